#include "core/base/utf8.hpp"

#include <cstdint>

#include "core/base/check.hpp"

namespace pipewright {

Utf8Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return {};
  char32_t code = first & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = (code << 6) | (byte(i) & 0x3fu);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  if (overlong || surrogate || code > 0x10ffff) return {};
  return {code, length};
}

void append_utf8(std::string& out, char32_t code) {
  PW_CHECK(code <= 0x10ffff && (code < 0xd800 || code >= 0xe000),
           "U+" << std::hex << static_cast<std::uint32_t>(code) << " is not a character");
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  static constexpr std::uint8_t lead[] = {0, 0xc0, 0xe0, 0xf0};
  out += static_cast<char>(lead[more] | (code >> (6 * more)));
  for (int i = more - 1; i >= 0; --i) {
    out += static_cast<char>(0x80 | ((code >> (6 * i)) & 0x3f));
  }
}

std::size_t find_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = first_character(text.substr(at)).bytes;
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

std::string clean_utf8(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t bad = find_invalid_utf8(text);
    out += text.substr(0, bad);
    if (bad == std::string_view::npos) return out;
    out += "\xef\xbf\xbd";
    text.remove_prefix(bad + 1);
  }
}

}  // namespace pipewright
