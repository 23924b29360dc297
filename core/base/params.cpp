#include "core/base/params.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace pipewright {

namespace {

ParamSpec make_spec(ParamType type, std::string name, std::string help) {
  ParamSpec spec;
  spec.name = std::move(name);
  spec.type = type;
  spec.help = std::move(help);
  return spec;
}

}  // namespace

ParamSpec ParamSpec::boolean_of(std::string name, std::string help) {
  return make_spec(ParamType::boolean, std::move(name), std::move(help));
}
ParamSpec ParamSpec::integer_of(std::string name, std::string help, std::string unit) {
  ParamSpec spec = make_spec(ParamType::integer, std::move(name), std::move(help));
  spec.unit = std::move(unit);
  return spec;
}
ParamSpec ParamSpec::real_of(std::string name, std::string help, std::string unit) {
  ParamSpec spec = make_spec(ParamType::real, std::move(name), std::move(help));
  spec.unit = std::move(unit);
  return spec;
}
ParamSpec ParamSpec::text_of(std::string name, std::string help, std::vector<std::string> choices) {
  ParamSpec spec = make_spec(ParamType::text, std::move(name), std::move(help));
  spec.choices = std::move(choices);
  return spec;
}
ParamSpec ParamSpec::path_of(std::string name, std::string help) {
  return make_spec(ParamType::path, std::move(name), std::move(help));
}
ParamSpec ParamSpec::time_of(std::string name, std::string help) {
  return make_spec(ParamType::time, std::move(name), std::move(help));
}
ParamSpec ParamSpec::times_of(std::string name, std::string help) {
  return make_spec(ParamType::times, std::move(name), std::move(help));
}
ParamSpec ParamSpec::list_of(std::string name, std::string help, ParamSpec element) {
  ParamSpec spec = make_spec(ParamType::list, std::move(name), std::move(help));
  spec.children.push_back(std::move(element));
  return spec;
}
ParamSpec ParamSpec::group_of(std::string name, std::string help, std::vector<ParamSpec> children) {
  ParamSpec spec = make_spec(ParamType::group, std::move(name), std::move(help));
  spec.children = std::move(children);
  return spec;
}
ParamSpec ParamSpec::one_of(std::string name, std::string help, std::vector<ParamSpec> children) {
  ParamSpec spec = make_spec(ParamType::one_of, std::move(name), std::move(help));
  spec.children = std::move(children);
  return spec;
}
ParamSpec ParamSpec::any_of(std::string name, std::string help) {
  return make_spec(ParamType::any, std::move(name), std::move(help));
}

ParamSpec&& ParamSpec::needed() && {
  required = true;
  return std::move(*this);
}
ParamSpec&& ParamSpec::or_default(Value value) && {
  default_value = std::move(value);
  return std::move(*this);
}
ParamSpec&& ParamSpec::at_least(double value) && {
  minimum = value;
  return std::move(*this);
}
ParamSpec&& ParamSpec::above(double value) && {
  minimum = value;
  exclusive_minimum = true;
  return std::move(*this);
}
ParamSpec&& ParamSpec::at_most(double value) && {
  maximum = value;
  return std::move(*this);
}

namespace {

std::string shown(const Value& value) {
  std::string text = to_json(value, -1);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

std::string join_path(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : path + "." + std::string(key);
}

std::vector<std::string> child_names(const ParamSpec& spec) {
  std::vector<std::string> names;
  for (const ParamSpec& child : spec.children) names.push_back(child.name);
  return names;
}

const ParamSpec* find_child(const ParamSpec& spec, std::string_view name) {
  for (const ParamSpec& child : spec.children) {
    if (child.name == name) return &child;
  }
  return nullptr;
}

[[noreturn]] void wrong(const std::string& path, std::string_view wanted, const Value& given) {
  throw ParamError(path, "expected " + std::string(wanted) + ", found " + shown(given));
}

std::string range_text(const ParamSpec& spec) {
  const bool low = std::isfinite(spec.minimum);
  const bool high = std::isfinite(spec.maximum);
  const std::string from =
      (spec.exclusive_minimum ? "above " : "at least ") + format_number(spec.minimum);
  if (low && high) return from + " and at most " + format_number(spec.maximum);
  if (low) return from;
  return high ? "at most " + format_number(spec.maximum) : "";
}

void check_range(const ParamSpec& spec, double value, const Value& given, const std::string& path) {
  const bool fits = value >= spec.minimum && value <= spec.maximum &&
                    !(spec.exclusive_minimum && value == spec.minimum);
  if (!fits || !std::isfinite(value)) {
    const std::string range = range_text(spec);
    throw ParamError(
        path, "must be " + (range.empty() ? "a finite number" : range) + ", found " + shown(given));
  }
}

Value check_scalar(const ParamSpec& spec, const Value& given, const std::string& path) {
  switch (spec.type) {
    case ParamType::boolean:
      if (!given.is_bool()) wrong(path, "true or false", given);
      return given;
    case ParamType::integer:
      if (!given.is_integer()) wrong(path, "a whole number", given);
      check_range(spec, static_cast<double>(given.as_integer()), given, path);
      return given;
    case ParamType::real:
      if (!given.is_number()) wrong(path, "a number", given);
      check_range(spec, given.as_real(), given, path);
      return given.as_real();
    case ParamType::text:
      if (!given.is_text()) wrong(path, "text", given);
      if (!spec.choices.empty() && std::find(spec.choices.begin(), spec.choices.end(),
                                             given.as_text()) == spec.choices.end()) {
        throw ParamError(path, "'" + given.as_text() + "' is not known" +
                                   suggest(given.as_text(), spec.choices));
      }
      return given;
    case ParamType::path:
      if (!given.is_text() || given.as_text().empty()) wrong(path, "the path of a file", given);
      return given;
    case ParamType::time: {
      static constexpr auto wanted =
          "whole ticks (3) or a duration with a unit (\"250us\", \"5ms\")";
      if (given.is_integer()) {
        check_range(spec, static_cast<double>(given.as_integer()), given, path);
        if (given.as_integer() < 0) wrong(path, wanted, given);
      } else if (!given.is_text() || !parse_duration_ns(given.as_text())) {
        wrong(path, wanted, given);
      }
      return given;
    }
    case ParamType::times:
      if (!given.is_list()) {
        ParamSpec one = spec;
        one.type = ParamType::time;
        return check_scalar(one, given, path);
      }
      if (given.as_list().empty()) wrong(path, "a time, or one for each stage", given);
      for (std::size_t i = 0; i < given.as_list().size(); ++i) {
        ParamSpec one = spec;
        one.type = ParamType::time;
        check_scalar(one, given.as_list()[i], path + "[" + std::to_string(i) + "]");
      }
      return given;
    case ParamType::bandwidth:
      if (!given.is_text() || !parse_bandwidth(given.as_text())) {
        wrong(path, "a bandwidth with a unit (\"10Gbit/s\", \"125MB/s\")", given);
      }
      return given;
    default:
      return given;
  }
}

Value check_group(const ParamSpec& spec, const Value& given, const std::string& path) {
  if (!given.is_map() && !given.is_null()) {
    const auto names = child_names(spec);
    wrong(path, "a map with keys from: " + join(names, ", "), given);
  }
  if (given.is_map()) {
    for (const auto& [key, value] : given.as_map()) {
      if (find_child(spec, key) == nullptr) {
        throw ParamError(join_path(path, key),
                         "unknown key '" + key + "'" + suggest(key, child_names(spec)));
      }
    }
  }
  Value checked = Value::map();
  for (const ParamSpec& child : spec.children) {
    const Value* value = given.find(child.name);
    const std::string child_path = join_path(path, child.name);
    if (value == nullptr || value->is_null()) {
      if (child.required) {
        throw ParamError(path, "'" + child.name + "' is missing: " + child.help);
      }
      if (!child.default_value.is_null()) {
        checked.set(child.name, check_params(child, child.default_value, child_path));
      }
      continue;
    }
    checked.set(child.name, check_params(child, *value, child_path));
  }
  return checked;
}

Value check_one_of(const ParamSpec& spec, const Value& given, const std::string& path) {
  const auto names = child_names(spec);
  Value map = given;
  if (given.is_text()) map = Value(Value::Map{{given.as_text(), Value()}});
  if (!map.is_map() || map.as_map().size() != 1) {
    wrong(path, "exactly one of: " + join(names, ", "), given);
  }
  const auto& [key, value] = map.as_map().front();
  const ParamSpec* child = find_child(spec, key);
  if (child == nullptr) {
    throw ParamError(given.is_text() ? path : join_path(path, key),
                     "'" + key + "' is not known" + suggest(key, names));
  }
  const bool takes_parameters = child->type != ParamType::any;
  Value checked = takes_parameters ? check_params(*child, value, join_path(path, key)) : value;
  return Value(Value::Map{{key, std::move(checked)}});
}

}  // namespace

Value check_params(const ParamSpec& spec, const Value& given, const std::string& path) {
  switch (spec.type) {
    case ParamType::group:
      return check_group(spec, given, path);
    case ParamType::one_of:
      return check_one_of(spec, given, path);
    case ParamType::list: {
      if (!given.is_list()) wrong(path, "a list", given);
      Value checked = Value::list();
      for (std::size_t i = 0; i < given.as_list().size(); ++i) {
        checked.as_list().push_back(check_params(spec.children.front(), given.as_list()[i],
                                                 path + "[" + std::to_string(i) + "]"));
      }
      return checked;
    }
    default:
      return check_scalar(spec, given, path);
  }
}

const ParamSpec* find_spec(const ParamSpec& root, std::string_view path) {
  const ParamSpec* at = &root;
  for (const std::string_view part : split(path, '.')) {
    at = find_child(*at, part);
    if (at == nullptr) return nullptr;
  }
  return at;
}

void visit_params(const ParamSpec& spec, Value& value, ParamType type,
                  const std::function<void(const ParamSpec&, Value&)>& visit) {
  if (value.is_null()) return;
  if (spec.type == type) visit(spec, value);
  if (spec.type == ParamType::list && value.is_list()) {
    for (Value& element : value.as_list())
      visit_params(spec.children.front(), element, type, visit);
  } else if (value.is_map()) {
    for (auto& [key, element] : value.as_map()) {
      if (const ParamSpec* child = find_child(spec, key))
        visit_params(*child, element, type, visit);
    }
  }
}

namespace {

std::string type_text(const ParamSpec& spec) {
  switch (spec.type) {
    case ParamType::boolean:
      return "true|false";
    case ParamType::integer:
      return "integer";
    case ParamType::real:
      return "number";
    case ParamType::text:
      return spec.choices.empty() ? "text" : join(spec.choices, "|");
    case ParamType::path:
      return "path";
    case ParamType::time:
      return "ticks or duration";
    case ParamType::times:
      return "ticks or duration, or a list with one per stage";
    case ParamType::bandwidth:
      return "bandwidth";
    case ParamType::list:
      return "list of " + type_text(spec.children.front());
    case ParamType::group:
      return "map";
    case ParamType::one_of:
      return "one of";
    case ParamType::any:
      return "";
  }
  return "";
}

}  // namespace

std::string describe_params(const ParamSpec& spec, int depth) {
  const std::string indent(static_cast<std::size_t>(depth) * 2, ' ');
  std::string line = indent + spec.name + ":";
  std::vector<std::string> facts;
  if (const std::string type = type_text(spec); !type.empty()) facts.push_back(type);
  if (!spec.unit.empty()) facts.push_back("in " + spec.unit);
  if (const std::string range = range_text(spec); !range.empty()) facts.push_back(range);
  if (spec.required) facts.push_back("must be given");
  if (!spec.default_value.is_null()) facts.push_back("default " + to_json(spec.default_value, -1));
  static constexpr std::size_t column = 34;
  if (line.size() < column) line.append(column - line.size(), ' ');
  line += " " + spec.help;
  if (!facts.empty()) line += " (" + join(facts, "; ") + ")";
  line += "\n";
  const bool list_of_groups =
      spec.type == ParamType::list && !spec.children.front().children.empty();
  const auto& children = list_of_groups ? spec.children.front().children : spec.children;
  if (spec.type != ParamType::list || list_of_groups) {
    for (const ParamSpec& child : children) line += describe_params(child, depth + 1);
  }
  return line;
}

}  // namespace pipewright
