// A description of the parameters that something takes (a plug-in, a whole job), from which come
// the checks, the defaults, the errors and the help text.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/base/value.hpp"

namespace pipewright {

enum class ParamType {
  boolean,
  integer,
  real,
  text,
  path,       // a file; relative ones are made absolute by whoever knows the job file's folder
  time,       // whole ticks (an integer) or a duration ("5ms")
  times,      // one time for all stages, or a list with one for each
  bandwidth,  // "10Gbit/s"
  list,       // every element is as children[0]
  group,      // a map with the keys in `children`
  one_of,     // a map with exactly one key, one of `children`; a child without required parameters
              // may be named alone: `delays: uniform`
  any,        // checked by whoever uses it
};

struct ParamSpec {
  std::string name;
  ParamType type = ParamType::any;
  std::string help;          // one line
  Value default_value = {};  // null: nothing is filled in
  bool required = false;     // must be given
  std::string unit = {};     // "ticks", "examples": for the help text
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  bool exclusive_minimum = false;         // the value must be above `minimum`
  std::vector<std::string> choices = {};  // for text
  std::vector<ParamSpec> children = {};

  // A spec is built up by its name: ParamSpec::integer_of("stages", "...").at_least(1).needed()
  static ParamSpec boolean_of(std::string name, std::string help);
  static ParamSpec integer_of(std::string name, std::string help, std::string unit = {});
  static ParamSpec real_of(std::string name, std::string help, std::string unit = {});
  static ParamSpec text_of(std::string name, std::string help,
                           std::vector<std::string> choices = {});
  static ParamSpec path_of(std::string name, std::string help);
  static ParamSpec time_of(std::string name, std::string help);
  static ParamSpec times_of(std::string name, std::string help);
  static ParamSpec list_of(std::string name, std::string help, ParamSpec element);
  static ParamSpec group_of(std::string name, std::string help, std::vector<ParamSpec> children);
  static ParamSpec one_of(std::string name, std::string help, std::vector<ParamSpec> children);
  static ParamSpec any_of(std::string name, std::string help);

  ParamSpec&& needed() &&;
  ParamSpec&& or_default(Value value) &&;
  ParamSpec&& at_least(double value) &&;
  ParamSpec&& above(double value) &&;
  ParamSpec&& at_most(double value) &&;
};

/// `given` with defaults filled in and whole numbers made reals where reals are meant. Throws
/// ParamError (path, what was given, what would be right) for an unknown or missing key, a wrong
/// type or a value out of range. `path` is where `given` stands.
Value check_params(const ParamSpec& spec, const Value& given, const std::string& path);

/// The spec at a dotted path ("optimizer.sgd.learning_rate"), or null.
const ParamSpec* find_spec(const ParamSpec& root, std::string_view path);

/// Calls `visit(spec, value)` on every value of `type` in a checked tree; visit may change the
/// value.
void visit_params(const ParamSpec& spec, Value& value, ParamType type,
                  const std::function<void(const ParamSpec&, Value&)>& visit);

/// One line per parameter, indented by depth: name, type, unit, default, range, help.
std::string describe_params(const ParamSpec& spec, int depth = 0);

}  // namespace pipewright
