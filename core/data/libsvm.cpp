#include "core/data/libsvm.hpp"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

#include "core/base/error.hpp"
#include "core/data/lines.hpp"

namespace pipewright {

namespace {

constexpr bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

/// Parses line by line; `line_` is the number of the line at hand.
class Parser {
 public:
  Parser(const std::string& name, const LibsvmOptions& options) : name_(name), options_(options) {}

  void parse_line(std::string_view text, std::int64_t line) {
    line_ = line;
    if (const auto* comment = find(text, '#')) text = text.substr(0, comment - text.data());
    const char* at = text.data();
    const char* const end = at + text.size();
    at = skip_blanks(at, end);
    if (at == end) return;

    const char* token_end = skip_token(at, end);
    data_.labels.push_back(number(at, token_end, "the label"));
    data_.lines.push_back(line);
    std::int64_t previous = 0;
    for (at = skip_blanks(token_end, end); at != end; at = skip_blanks(token_end, end)) {
      token_end = skip_token(at, end);
      previous = entry(at, token_end, previous);
    }
    data_.rows.row_starts.push_back(static_cast<std::int64_t>(data_.rows.values.size()));
  }

  LibsvmData take(std::int64_t lines) {
    if (data_.labels.empty()) {
      throw DataError(name_ + ": holds no examples (" + std::to_string(lines) +
                      " lines); expected lines such as \"1 3:0.5 7:1\"");
    }
    data_.rows.column_count = options_.features > 0 ? options_.features : largest_;
    return std::move(data_);
  }

 private:
  static const char* find(std::string_view text, char c) {
    return static_cast<const char*>(std::memchr(text.data(), c, text.size()));
  }
  static const char* skip_blanks(const char* at, const char* end) {
    while (at != end && is_blank(*at)) ++at;
    return at;
  }
  static const char* skip_token(const char* at, const char* end) {
    while (at != end && !is_blank(*at)) ++at;
    return at;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(name_ + ":" + std::to_string(line_) + ": " + what);
  }

  double number(const char* at, const char* end, const char* what) const {
    const char* const first = at != end && *at == '+' ? at + 1 : at;
    double value = 0;
    const auto [stop, fault] = std::from_chars(first, end, value);
    if (fault == std::errc::result_out_of_range) {
      fail(std::string(what) + " " + excerpt({at, end}) + " is out of the range of float64");
    }
    // "+-1": from_chars would take the second sign.
    const bool two_signs = first != at && first != end && *first == '-';
    if (fault != std::errc{} || stop != end || two_signs) {
      fail(std::string(what) + " " + excerpt({at, end}) + " is not a number");
    }
    if (!std::isfinite(value)) {
      fail(std::string(what) + " " + excerpt({at, end}) + " is not a finite number");
    }
    return value;
  }

  /// One INDEX:VALUE; gives the index.
  std::int64_t entry(const char* at, const char* end, std::int64_t previous) {
    const std::string_view token(at, end);
    const char* const colon = find(token, ':');
    if (colon == nullptr) fail("expected INDEX:VALUE, found " + excerpt(token));
    std::int64_t index = 0;
    const auto [stop, fault] = std::from_chars(at, colon, index);
    if (fault == std::errc::result_out_of_range) {
      fail("index of " + excerpt(token) + " is too large");
    }
    if (fault != std::errc{} || stop != colon) {
      fail("the index of " + excerpt(token) + " is not a whole number");
    }
    if (index <= previous) check_order(index, previous);
    if (options_.features > 0 && index > options_.features) {
      fail("index " + std::to_string(index) + " is above the number of features, " +
           std::to_string(options_.features));
    }
    if (index > std::numeric_limits<std::int32_t>::max()) {
      fail("index " + std::to_string(index) + " is above the largest supported, 2147483647");
    }
    data_.rows.columns.push_back(static_cast<std::int32_t>(index - 1));
    data_.rows.values.push_back(number(colon + 1, end, "the value"));
    largest_ = std::max(largest_, index);
    return index;
  }

  [[noreturn]] void check_order(std::int64_t index, std::int64_t previous) const {
    if (index < 1) fail("index " + std::to_string(index) + ": indices count from 1");
    fail("index " + std::to_string(index) + " comes after " + std::to_string(previous) +
         ": indices of a line must ascend");
  }

  const std::string& name_;
  const LibsvmOptions& options_;
  LibsvmData data_;
  std::int64_t line_ = 0;
  std::int64_t largest_ = 0;
};

}  // namespace

LibsvmData read_libsvm(std::istream& stream, const std::string& name,
                       const LibsvmOptions& options) {
  Parser parser(name, options);
  const std::int64_t lines = for_each_line(
      stream, name, options.line_bytes_max,
      [&](std::string_view text, std::int64_t line) { parser.parse_line(text, line); });
  return parser.take(lines);
}

}  // namespace pipewright
