#include "core/data/text.hpp"

#include <algorithm>
#include <cstdio>

#include "core/base/error.hpp"
#include "core/base/utf8.hpp"

namespace pipewright {

namespace {

constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

std::string read_all(std::istream& in, const std::string& path) {
  static constexpr std::size_t piece_bytes = std::size_t{1} << 20;
  std::string bytes;
  while (in) {
    const std::size_t before = bytes.size();
    bytes.resize(before + piece_bytes);
    in.read(bytes.data() + before, static_cast<std::streamsize>(piece_bytes));
    bytes.resize(before + static_cast<std::size_t>(in.gcount()));
  }
  if (in.bad()) {
    throw DataError(path + ": reading failed after byte " + std::to_string(bytes.size()));
  }
  return bytes;
}

/// The bytes at the front of `text` that could have been one character, as "0xC3 0x28".
std::string hexadecimal(std::string_view text) {
  static constexpr std::size_t character_bytes_max = 4;
  std::string out;
  for (const char c : text.substr(0, character_bytes_max)) {
    const auto byte = static_cast<unsigned char>(c);
    if (!out.empty() && byte < 0x80) break;  // it starts a character of its own
    char digits[8];
    std::snprintf(digits, sizeof digits, "%s0x%02X", out.empty() ? "" : " ", byte);
    out += digits;
  }
  return out;
}

[[noreturn]] void refuse(std::string_view text, std::size_t at, const std::string& where) {
  const std::string_view before = text.substr(0, at);
  throw DataError(where + ":" + std::to_string(1 + std::ranges::count(before, '\n')) + ": byte " +
                  std::to_string(at) + ": " + hexadecimal(text.substr(at)) +
                  " is not valid UTF-8; convert the text, for instance with "
                  "`iconv -f ISO-8859-1 -t UTF-8`");
}

/// Calls visit(code point) on every character of `text` from byte `at` on.
template <class Visit>
void for_each_character(std::string_view text, std::size_t at, const std::string& where,
                        Visit&& visit) {
  while (at < text.size()) {
    const Utf8Character character = first_character(text.substr(at));
    if (character.bytes == 0) refuse(text, at, where);
    visit(character.code);
    at += character.bytes;
  }
}

}  // namespace

TokenText read_text(std::istream& in, const std::string& path) {
  const std::string bytes = read_all(in, path);
  const std::size_t start = bytes.starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
  if (bytes.size() == start) {
    throw DataError(path + ": is empty; expected a text in UTF-8");
  }
  TokenText text;
  text.tokens.reserve(bytes.size());  // at least as many bytes as characters
  for_each_character(bytes, start, path, [&](char32_t code) {
    text.tokens.push_back(static_cast<std::int32_t>(code));
  });
  const std::int32_t largest = *std::max_element(text.tokens.begin(), text.tokens.end());
  std::vector<std::int32_t> rank(static_cast<std::size_t>(largest) + 1, -1);
  for (const std::int32_t token : text.tokens) rank[static_cast<std::size_t>(token)] = 0;
  for (std::size_t code = 0; code < rank.size(); ++code) {
    if (rank[code] < 0) continue;
    rank[code] = static_cast<std::int32_t>(text.vocabulary.size());
    text.vocabulary.push_back(static_cast<char32_t>(code));
  }
  for (std::int32_t& token : text.tokens) token = rank[static_cast<std::size_t>(token)];
  return text;
}

std::string to_utf8(char32_t c) {
  std::string out;
  append_utf8(out, c);
  return out;
}

std::vector<char32_t> code_points(std::string_view utf8, const std::string& where) {
  std::vector<char32_t> codes;
  for_each_character(utf8, 0, where, [&](char32_t code) { codes.push_back(code); });
  return codes;
}

}  // namespace pipewright
