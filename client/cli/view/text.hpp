// Text as a terminal shows it: widths in columns, clipping, and short forms of numbers and times.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pipewright::cli {

/// One code point of UTF-8 text; of bytes that are none the first, as not valid.
struct Glyph {
  char32_t code = 0;
  std::size_t bytes = 1;
  bool valid = true;
};
Glyph next_glyph(std::string_view text, std::size_t at);
/// How many bytes the code point at the front of `text` (not empty) has by its first one.
std::size_t glyph_bytes_wanted(std::string_view text);

/// Columns that UTF-8 text takes; colour codes (ESC [ ... m) take none, CJK and emoji two.
int display_width(std::string_view text);
/// At most `columns` wide, ending in "…" when something was cut off. Colour codes are kept.
std::string clip(std::string_view text, int columns);
/// Padded with spaces to `columns`.
std::string pad_right(std::string_view text, int columns);
std::string pad_left(std::string_view text, int columns);
/// Control characters (which could steer the terminal) and broken UTF-8 replaced by '?'.
std::string printable(std::string_view text);

/// For terminals without UTF-8: as wide as before, lines, bars and marks by characters like them,
/// everything else '?'.
std::string to_ascii(std::string_view text);

/// At most `digits` significant digits: 0.69314718 -> "0.6931", 1.23456e-7 -> "1.235e-7", "nan".
std::string format_short(double value, int digits = 4);
/// 950 -> "950", 12500 -> "12.5k", 3e6 -> "3M".
std::string format_si(double value);
/// "0.3 s", "12 s", "3 min 05 s", "2 h 07 min", "4 d 3 h".
std::string format_seconds(double seconds);
/// Local time "2026-01-31 14:05:09"; "-" for 0.
std::string format_local_time(std::int64_t unix_ms);

}  // namespace pipewright::cli
