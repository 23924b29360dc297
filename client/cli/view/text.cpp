#include "client/cli/view/text.hpp"

#include <locale.h>
#include <wchar.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <ctime>
#include <map>
#include <system_error>

namespace pipewright::cli {

Glyph next_glyph(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return {first, 1, true};
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4) return {0, 1, false};
  char32_t code = first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return {0, 1, false};
    code = (code << 6U) | (byte(i) & 0x3FU);
  }
  constexpr std::array<char32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < least[length] || code > 0x10FFFF || surrogate) return {0, 1, false};
  return {code, length, true};
}

std::size_t glyph_bytes_wanted(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0xC2 || first > 0xF4) return 1;
  return first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
}

namespace {

/// By the tables of the C library, which go with its version of Unicode, whatever the locale is.
int glyph_width(char32_t code) {
  static const locale_t utf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (code < 0x80 || utf8 == nullptr) return 1;
  const locale_t before = ::uselocale(utf8);
  const int width = ::wcwidth(static_cast<wchar_t>(code));
  ::uselocale(before);
  return width < 0 ? 1 : width;
}

/// Bytes of a colour code that begins at `at`, or 0.
std::size_t escape_bytes(std::string_view text, std::size_t at) {
  if (!text.substr(at).starts_with("\x1b[")) return 0;
  const std::size_t end = text.find_first_not_of("0123456789;", at + 2);
  return end != std::string_view::npos && text[end] == 'm' ? end + 1 - at : 0;
}

std::string without_exponent_zeros(std::string text) {
  const std::size_t e = text.find('e');
  if (e == std::string::npos) return text;
  const bool negative = text[e + 1] == '-';
  std::size_t digit = e + 2;
  while (digit + 1 < text.size() && text[digit] == '0') ++digit;
  return text.substr(0, e + 1) + (negative ? "-" : "") + text.substr(digit);
}

}  // namespace

int display_width(std::string_view text) {
  int width = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (const std::size_t escape = escape_bytes(text, at)) {
      at += escape;
      continue;
    }
    const Glyph glyph = next_glyph(text, at);
    width += glyph.valid ? glyph_width(glyph.code) : 1;
    at += glyph.bytes;
  }
  return width;
}

std::string clip(std::string_view text, int columns) {
  if (columns <= 0) return {};
  if (display_width(text) <= columns) return std::string(text);
  std::string out;
  int width = 0;
  bool full = false;
  for (std::size_t at = 0; at < text.size();) {
    if (const std::size_t escape = escape_bytes(text, at)) {
      out += text.substr(at, escape);
      at += escape;
      continue;
    }
    const Glyph glyph = next_glyph(text, at);
    const int glyph_columns = glyph.valid ? glyph_width(glyph.code) : 1;
    if (!full && width + glyph_columns > columns - 1) {
      full = true;
      out += "…";
    }
    if (!full) out += text.substr(at, glyph.bytes);
    width += glyph_columns;
    at += glyph.bytes;
  }
  return out;
}

std::string pad_right(std::string_view text, int columns) {
  return std::string(text) +
         std::string(static_cast<std::size_t>(std::max(0, columns - display_width(text))), ' ');
}

std::string pad_left(std::string_view text, int columns) {
  return std::string(static_cast<std::size_t>(std::max(0, columns - display_width(text))), ' ') +
         std::string(text);
}

std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const Glyph glyph = next_glyph(text, at);
    const bool control = glyph.code < 0x20 || (glyph.code >= 0x7F && glyph.code < 0xA0) ||
                         (glyph.code >= 0x202A && glyph.code <= 0x202E);
    if (!glyph.valid || control) {
      out += '?';
    } else {
      out += text.substr(at, glyph.bytes);
    }
    at += glyph.bytes;
  }
  return out;
}

std::string to_ascii(std::string_view text) {
  static const std::map<char32_t, char> likeness{
      {U'…', '~'}, {U'│', '|'}, {U'┤', '+'}, {U'└', '+'}, {U'─', '-'}, {U'┬', '+'},
      {U'●', '*'}, {U'○', 'o'}, {U'█', '#'}, {U'▉', '#'}, {U'▊', '#'}, {U'▋', '#'},
      {U'▌', '#'}, {U'▍', '.'}, {U'▎', '.'}, {U'▏', '.'}, {U'░', '.'}, {U'×', 'X'},
      {U'▸', '>'}, {U'·', '-'}, {U'↑', '^'}, {U'↓', 'v'}};
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const Glyph glyph = next_glyph(text, at);
    at += glyph.bytes;
    if (glyph.code < 0x80 && glyph.valid) {
      out += static_cast<char>(glyph.code);
      continue;
    }
    const auto like = likeness.find(glyph.code);
    const int width = glyph.valid ? glyph_width(glyph.code) : 1;
    out.append(static_cast<std::size_t>(width), like == likeness.end() ? '?' : like->second);
  }
  return out;
}

std::string format_short(double value, int digits) {
  if (std::isnan(value)) return "nan";
  std::array<char, 64> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::general, digits)
                       .ptr;
  std::string text(buffer.data(), end);
  // Like %g, but 12340 rather than 1.234e4: whole numbers of usual size stay whole.
  if (text.find('e') != std::string::npos && std::abs(value) >= 1 && std::abs(value) < 1e7) {
    const double unit = std::pow(10, std::floor(std::log10(std::abs(value))) + 1 - digits);
    const auto whole = static_cast<std::int64_t>(std::round(std::round(value / unit) * unit));
    return std::to_string(whole);
  }
  return without_exponent_zeros(std::move(text));
}

std::string format_si(double value) {
  constexpr std::array<std::pair<double, const char*>, 4> units{
      {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}}};
  for (const auto& [unit, letter] : units) {
    if (std::abs(value) >= unit && (unit > 1e3 || std::abs(value) >= 1e4)) {
      return format_short(value / unit) + letter;
    }
  }
  return format_short(value);
}

std::string format_seconds(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  if (seconds < 0.9995) return format_short(std::round(seconds * 1000)) + " ms";
  if (seconds < 9.95) return format_short(seconds, 2) + " s";
  const auto whole = static_cast<std::int64_t>(std::min(std::round(seconds), 1e15));
  const auto two = [](std::int64_t n) { return (n < 10 ? "0" : "") + std::to_string(n); };
  if (whole < 60) return std::to_string(whole) + " s";
  if (whole < 3600) return std::to_string(whole / 60) + " min " + two(whole % 60) + " s";
  if (whole < 86400) return std::to_string(whole / 3600) + " h " + two(whole % 3600 / 60) + " min";
  return std::to_string(whole / 86400) + " d " + std::to_string(whole % 86400 / 3600) + " h";
}

std::string format_local_time(std::int64_t unix_ms) {
  if (unix_ms == 0) return "-";
  const std::time_t seconds = unix_ms / 1000;
  std::tm local{};
  localtime_r(&seconds, &local);
  std::array<char, 32> buffer;
  const std::size_t size = std::strftime(buffer.data(), buffer.size(), "%Y-%m-%d %H:%M:%S", &local);
  return {buffer.data(), size};
}

}  // namespace pipewright::cli
