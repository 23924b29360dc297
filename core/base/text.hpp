// Numbers to and from text without the locale, and the nearest valid word for an error message.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

/// Shortest decimal that reads back as the same double; "nan", "inf" and "-inf" otherwise.
std::string format_number(double value);
void append_number(std::string& out, double value);
void append_number(std::string& out, std::int64_t value);

/// The whole of `text` as a finite number, or nothing. Accepts a leading '+'.
std::optional<double> parse_real(std::string_view text);
std::optional<std::int64_t> parse_integer(std::string_view text);

/// The candidate with the least edit distance to `word`, if it is near enough to be meant.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

/// ", did you mean 'x'?" or, with nothing near, "; valid: a, b, c" (or nothing without candidates).
std::string suggest(std::string_view word, std::span<const std::string> candidates);

std::string join(std::span<const std::string> words, std::string_view separator);
std::vector<std::string_view> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);

/// "5ms", "250us", "1.5s", "10ns" in whole nanoseconds (rounded up), or nothing if it is not one.
std::optional<std::int64_t> parse_duration_ns(std::string_view text);
/// The shortest of ns, us, ms, s that shows the duration exactly: 250000 -> "250us".
std::string format_duration_ns(std::int64_t nanoseconds);
/// "10Gbit/s", "1GB/s", "125MB/s" (powers of 1000; kB, KiB... accepted) in bytes per second.
std::optional<double> parse_bandwidth(std::string_view text);
/// 1536 -> "1.5 KiB".
std::string format_bytes(double bytes);

}  // namespace pipewright
