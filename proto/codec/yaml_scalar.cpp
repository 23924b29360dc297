#include "proto/codec/yaml_scalar.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>

#include "core/base/text.hpp"

namespace pipewright {

namespace {

bool any_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

std::size_t digits_at(std::string_view text, std::size_t at) {
  const std::size_t end = text.find_first_not_of("0123456789", at);
  return (end == std::string_view::npos ? text.size() : end) - at;
}

std::string_view without_sign(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return text;
}

/// [-+]?[0-9]+
bool is_integer(std::string_view text) {
  text = without_sign(text);
  return !text.empty() && digits_at(text, 0) == text.size();
}

/// [-+]? ( \.[0-9]+ | [0-9]+(\.[0-9]*)? ) ([eE][-+]?[0-9]+)?
bool is_real(std::string_view text) {
  text = without_sign(text);
  const std::size_t whole = digits_at(text, 0);
  std::size_t at = whole;
  if (at < text.size() && text[at] == '.') {
    const std::size_t fraction = digits_at(text, at + 1);
    if (whole + fraction == 0) return false;
    at += 1 + fraction;
  } else if (whole == 0) {
    return false;
  }
  if (at == text.size()) return true;
  if (text[at] != 'e' && text[at] != 'E') return false;
  const std::string_view exponent = without_sign(text.substr(at + 1));
  return !exponent.empty() && digits_at(exponent, 0) == exponent.size();
}

YamlScalar based_integer(std::string_view text, int base) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + 2, end, value, base);
  if (error == std::errc{} && stop == end) return {Value(value), ""};
  if (error == std::errc::result_out_of_range) {
    return {{}, std::string(text) + " does not fit 64 bits"};
  }
  return {Value(text), ""};
}

YamlScalar plain(const std::string& text) {
  if (any_of(text, {"", "~", "null", "Null", "NULL"})) return {};
  if (any_of(text, {"true", "True", "TRUE"})) return {Value(true), ""};
  if (any_of(text, {"false", "False", "FALSE"})) return {Value(false), ""};
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  if (any_of(text, {".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"})) {
    return {Value(infinity), ""};
  }
  if (any_of(text, {"-.inf", "-.Inf", "-.INF"})) return {Value(-infinity), ""};
  if (any_of(text, {".nan", ".NaN", ".NAN"})) {
    return {Value(std::numeric_limits<double>::quiet_NaN()), ""};
  }
  if (text.starts_with("0x") && text.size() > 2 && text[2] != '-') return based_integer(text, 16);
  if (text.starts_with("0o") && text.size() > 2 && text[2] != '-') return based_integer(text, 8);
  if (is_integer(text)) {
    if (const auto value = parse_integer(text)) return {Value(*value), ""};
    return {{}, "the whole number " + text + " does not fit 64 bits"};
  }
  if (is_real(text)) {
    if (const auto value = parse_real(text)) return {Value(*value), ""};
    return {{}, "the number " + text + " does not fit a double"};
  }
  return {Value(text), ""};
}

}  // namespace

YamlScalar yaml_scalar(const std::string& tag, const std::string& text) {
  if (tag == "?" || tag.empty()) return plain(text);
  if (tag == "!" || tag == "tag:yaml.org,2002:str") return {Value(text), ""};
  const bool core = any_of(tag, {"tag:yaml.org,2002:int", "tag:yaml.org,2002:float",
                                 "tag:yaml.org,2002:bool", "tag:yaml.org,2002:null"});
  if (!core) return {{}, "the tag " + tag + " is not supported"};
  YamlScalar scalar = plain(text);
  const Value& value = scalar.value;
  const bool fits = (tag.ends_with("int") && value.is_integer()) ||
                    (tag.ends_with("float") && value.is_number()) ||
                    (tag.ends_with("bool") && value.is_bool()) ||
                    (tag.ends_with("null") && value.is_null());
  if (scalar.fault.empty() && !fits) scalar.fault = "'" + text + "' is not of its tag's type";
  if (tag.ends_with("float") && value.is_integer()) scalar.value = value.as_real();
  return scalar;
}

}  // namespace pipewright
