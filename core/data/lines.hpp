// Lines of a stream, read in large pieces: the memory taken is that of the longest line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <string>
#include <string_view>

#include "core/base/error.hpp"

namespace pipewright {

/// `text` in quotes for an error message: cut at 40 bytes, unprintable bytes as '?'.
inline std::string excerpt(std::string_view text) {
  static constexpr std::size_t length_max = 40;
  std::string out = "'";
  for (const char c : text.substr(0, length_max)) out += c >= 0x20 && c < 0x7f ? c : '?';
  return out + (text.size() > length_max ? "...'" : "'");
}

/// Throws DataError when a line has more bytes than it may: a file without line ends would fill the
/// memory.
inline void check_line_length(std::size_t bytes, std::size_t bytes_max, const std::string& name,
                              std::int64_t number) {
  if (bytes <= bytes_max) return;
  throw DataError(name + ":" + std::to_string(number) + ": the line is longer than " +
                  std::to_string(bytes_max) + " bytes");
}

/// Calls visit(text without its '\n', number from 1) on every line; gives their number. Throws
/// DataError for a line of more than `line_bytes_max` bytes and for a stream that fails.
template <class Visit>
std::int64_t for_each_line(std::istream& stream, const std::string& name,
                           std::size_t line_bytes_max, Visit&& visit) {
  static constexpr std::size_t piece_bytes = std::size_t{256} << 10;
  std::string held;  // the bytes read and not yet visited, which start at a line's start
  std::int64_t line = 0;
  const auto check_length = [&](std::size_t bytes) {
    check_line_length(bytes, line_bytes_max, name, line + 1);
  };
  while (stream) {
    const std::size_t before = held.size();
    held.resize(before + piece_bytes);
    stream.read(held.data() + before, static_cast<std::streamsize>(piece_bytes));
    held.resize(before + static_cast<std::size_t>(stream.gcount()));
    std::size_t start = 0;
    std::size_t search_from = before;
    for (std::size_t end; (end = held.find('\n', search_from)) != std::string::npos;) {
      check_length(end - start);
      visit(std::string_view(held).substr(start, end - start), ++line);
      start = search_from = end + 1;
    }
    held.erase(0, start);
    check_length(held.size());
  }
  if (stream.bad()) {
    throw DataError(name + ":" + std::to_string(line + 1) + ": reading failed after this line");
  }
  if (!held.empty()) visit(std::string_view(held), ++line);
  return line;
}

/// One line, as std::getline gives it. Throws DataError for a line of more than 16 MiB.
bool next_line(std::istream& in, std::string& line, const std::string& name, std::int64_t number);

}  // namespace pipewright
