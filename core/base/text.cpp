#include "core/base/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <numeric>

namespace pipewright {

void append_number(std::string& out, double value) {
  if (std::isnan(value)) {  // to_chars tells the sign of a nan, which means nothing
    out += "nan";
    return;
  }
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  out.append(buffer.data(), end);
}

void append_number(std::string& out, std::int64_t value) {
  std::array<char, 24> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  out.append(buffer.data(), end);
}

std::string format_number(double value) {
  std::string out;
  append_number(out, value);
  return out;
}

namespace {

template <class T>
std::optional<T> parse_whole(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  T value{};
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitution});
    }
  }
  return row.back();
}

/// Splits "12.5ms" into 12.5 and "ms".
std::optional<std::pair<double, std::string_view>> number_and_unit(std::string_view text) {
  text = trim(text);
  double number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc{}) return std::nullopt;
  const auto used = static_cast<std::size_t>(end - text.data());
  return std::pair{number, trim(text.substr(used))};
}

struct Unit {
  std::string_view name;
  double factor;
};

std::optional<double> with_unit(std::string_view text, std::span<const Unit> units) {
  const auto parts = number_and_unit(text);
  if (!parts) return std::nullopt;
  for (const Unit& unit : units) {
    if (unit.name == parts->second) return parts->first * unit.factor;
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> parse_real(std::string_view text) {
  const auto value = parse_whole<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}
std::optional<std::int64_t> parse_integer(std::string_view text) {
  return parse_whole<std::int64_t>(text);
}

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
  std::optional<std::string> best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 2) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string suggest(std::string_view word, std::span<const std::string> candidates) {
  if (const auto near = nearest(word, candidates)) return ", did you mean '" + *near + "'?";
  if (candidates.empty()) return "";
  return "; valid: " + join(candidates, ", ");
}

std::string join(std::span<const std::string> words, std::string_view separator) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += separator;
    out += words[i];
  }
  return out;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::optional<std::int64_t> parse_duration_ns(std::string_view text) {
  static constexpr std::array<Unit, 4> units{{{"ns", 1.0}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
  const auto nanoseconds = with_unit(text, units);
  if (!nanoseconds || !(*nanoseconds >= 0) || *nanoseconds > 9e18) return std::nullopt;
  // 2.3us is 2299.9999999999995 in binary: what is a whole number but for rounding stays one.
  const double nearest_whole = std::round(*nanoseconds);
  const bool whole = std::abs(*nanoseconds - nearest_whole) <= 1e-9 * nearest_whole;
  return static_cast<std::int64_t>(whole ? nearest_whole : std::ceil(*nanoseconds));
}

std::string format_duration_ns(std::int64_t nanoseconds) {
  static constexpr std::array<std::pair<std::int64_t, const char*>, 3> units{
      {{1'000'000'000, "s"}, {1'000'000, "ms"}, {1'000, "us"}}};
  for (const auto& [size, name] : units) {
    if (nanoseconds != 0 && nanoseconds % size == 0)
      return std::to_string(nanoseconds / size) + name;
  }
  return std::to_string(nanoseconds) + "ns";
}

std::optional<double> parse_bandwidth(std::string_view text) {
  static constexpr std::array<Unit, 16> units{{{"bit/s", 0.125},
                                               {"kbit/s", 125.0},
                                               {"Kbit/s", 125.0},
                                               {"Mbit/s", 125e3},
                                               {"Gbit/s", 125e6},
                                               {"Tbit/s", 125e9},
                                               {"B/s", 1.0},
                                               {"kB/s", 1e3},
                                               {"KB/s", 1e3},
                                               {"MB/s", 1e6},
                                               {"GB/s", 1e9},
                                               {"TB/s", 1e12},
                                               {"KiB/s", 1024.0},
                                               {"MiB/s", 1048576.0},
                                               {"GiB/s", 1073741824.0},
                                               {"TiB/s", 1099511627776.0}}};
  const auto bytes_per_second = with_unit(text, units);
  if (!bytes_per_second || !(*bytes_per_second > 0)) return std::nullopt;
  return bytes_per_second;
}

std::string format_bytes(double bytes) {
  static constexpr std::array<const char*, 5> units{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < units.size()) {
    bytes /= 1024;
    ++unit;
  }
  std::array<char, 48> buffer;
  const bool whole = bytes == std::floor(bytes);
  std::snprintf(buffer.data(), buffer.size(), whole ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
  return buffer.data();
}

}  // namespace pipewright
