#include "core/train/sweep.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/train/job.hpp"

namespace pipewright {

namespace {

using Point = std::vector<std::pair<std::string, Value>>;

std::string joined(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : path + "." + std::string(key);
}

std::string indexed(const std::string& path, std::size_t i) {
  return path + "[" + std::to_string(i) + "]";
}

/// The kind that a tree has at a one_of ("delays: uniform" or "delays: {uniform: ...}"), if any.
std::string kind_of(const Value* one_of) {
  if (one_of == nullptr) return "";
  if (one_of->is_text()) return one_of->as_text();
  return one_of->is_map() && one_of->as_map().size() == 1 ? one_of->as_map().front().first : "";
}

bool is_single(const ParamSpec& spec) {
  return spec.type != ParamType::group && spec.type != ParamType::list;
}

bool is_of_all_runs(std::string_view key) {
  return key == "sweep" || key == "repeats" || key == "priority";
}

/// Every key that a sweep of this job may set.
void collect_keys(const ParamSpec& spec, const Value* here, const std::string& path,
                  std::vector<std::string>& keys) {
  const std::string kind = spec.type == ParamType::one_of ? kind_of(here) : "";
  if (spec.type == ParamType::list) return;
  for (const ParamSpec& child : spec.children) {
    if (path.empty() && is_of_all_runs(child.name)) continue;
    if (!kind.empty() && child.name != kind) continue;
    const std::string child_path = joined(path, child.name);
    if (is_single(child)) keys.push_back(child_path);
    collect_keys(child, here == nullptr ? nullptr : here->find(child.name), child_path, keys);
  }
}

[[noreturn]] void unknown_key(const Value& job, const std::string& key, const std::string& where) {
  std::vector<std::string> keys;
  collect_keys(job_schema(), &job, "", keys);
  for (const std::string& known : keys) {
    if (known.ends_with("." + key)) {
      throw ParamError(where, "a key is given by its whole path; did you mean '" + known + "'?");
    }
  }
  const auto near = nearest(key, keys);
  throw ParamError(
      where, "a job has no key '" + key + "'" +
                 (near ? ", did you mean '" + *near + "'?" : "; `pipewright help job` lists them"));
}

/// The spec of a key that may be swept.
const ParamSpec& spec_of(const Value& job, const std::string& key, const std::string& where) {
  const ParamSpec* spec = &job_schema();
  const Value* here = &job;
  std::string path;
  for (const std::string_view part : split(key, '.')) {
    const auto child = std::find_if(spec->children.begin(), spec->children.end(),
                                    [&](const ParamSpec& c) { return c.name == part; });
    if (spec->type == ParamType::list || child == spec->children.end() ||
        (path.empty() && is_of_all_runs(part))) {
      unknown_key(job, key, where);
    }
    if (const std::string kind = kind_of(here);
        spec->type == ParamType::one_of && !kind.empty() && kind != part) {
      throw ParamError(where,
                       "the job's " + path + " is '" + kind + "', not '" + std::string(part) + "'");
    }
    here = here == nullptr ? nullptr : here->find(part);
    path = joined(path, part);
    spec = &*child;
  }
  if (is_single(*spec)) return *spec;
  std::vector<std::string> below;
  collect_keys(*spec, here, path, below);
  throw ParamError(where, std::string("is a ") + (spec->type == ParamType::group ? "map" : "list") +
                              "; a sweep sets single values" +
                              (below.empty() ? "" : ", here: " + join(below, ", ")));
}

/// One value of a key; lists and maps are none.
Value value_of(const ParamSpec& spec, const Value& given, const std::string& where) {
  if (given.is_map() || given.is_list() || given.is_null()) {
    throw ParamError(where, "expected a single value, found " + to_json(given, -1));
  }
  Value checked = check_params(spec, given, where);
  return checked.is_map() ? given : checked;  // a kind named alone stays so
}

/// {log2: [from, to]}: the powers of two from 2^from to 2^to, as integers where the key takes them.
Value::List powers_of_two(const ParamSpec& spec, const Value& bounds, const std::string& where) {
  static constexpr std::int64_t exponent_max = 1023;
  const auto is_exponent = [](const Value& v) {
    return v.is_integer() && std::abs(v.as_integer()) <= exponent_max;
  };
  if (!bounds.is_list() || bounds.as_list().size() != 2 || !is_exponent(bounds.as_list()[0]) ||
      !is_exponent(bounds.as_list()[1])) {
    throw ParamError(where, "expected two whole exponents, as in {log2: [-12, -2]}, found " +
                                to_json(bounds, -1));
  }
  const std::int64_t from = bounds.as_list()[0].as_integer();
  const std::int64_t to = bounds.as_list()[1].as_integer();
  Value::List values;
  for (std::int64_t e = from; from <= to ? e <= to : e >= to; e += from <= to ? 1 : -1) {
    const bool whole = spec.type != ParamType::real && e >= 0 && e <= 62;
    const Value power =
        whole ? Value(std::int64_t{1} << e) : Value(std::ldexp(1.0, static_cast<int>(e)));
    values.push_back(value_of(spec, power, where));
  }
  return values;
}

bool is_log2(const Value& value) {
  return value.is_map() && value.as_map().size() == 1 && value.as_map().front().first == "log2";
}

/// Calls `leaf(key, value, where)` for the keys of a map: dotted, or of maps in maps.
template <class Leaf>
void each_key(const Value& map, const std::string& key, const std::string& where, Leaf&& leaf) {
  for (const auto& [name, value] : map.as_map()) {
    const std::string inner_key = joined(key, name);
    const std::string inner_where = joined(where, name);
    if (value.is_map() && !value.as_map().empty() && !is_log2(value)) {
      each_key(value, inner_key, inner_where, leaf);
    } else {
      leaf(inner_key, value, inner_where);
    }
  }
}

/// One row of the normal form: keys and their values or lists of values, null where there is none.
Value::Map row_of(const Value::List& keys, const Value& row) {
  if (!row.is_list() || row.as_list().size() != keys.size()) {
    throw ParamError(
        "sweep", "expected " + std::to_string(keys.size()) + " values, found " + to_json(row, -1));
  }
  Value::Map map;
  for (std::size_t k = 0; k < keys.size(); ++k) {
    if (!keys[k].is_text()) throw ParamError("sweep.keys", "holds " + to_json(keys[k], -1));
    if (!row.as_list()[k].is_null()) map.emplace_back(keys[k].as_text(), row.as_list()[k]);
  }
  return map;
}

/// A sweep in the normal form as people write it; any other as it is.
Value as_written(const Value& sweep) {
  const Value* keys = sweep.find("keys");
  if (keys == nullptr || !keys->is_list()) return sweep;
  if (const Value* grid = sweep.find("grid")) return row_of(keys->as_list(), *grid);
  const Value* points = sweep.find("points");
  if (points == nullptr || !points->is_list()) return sweep;
  Value::List list;
  for (const Value& point : points->as_list()) list.push_back(row_of(keys->as_list(), point));
  return list;
}

void check_count(std::uint64_t count, const char* what) {
  if (count > runs_max) {
    throw ParamError(what, "makes " + std::to_string(count) + " runs; at most " +
                               std::to_string(runs_max) + " are allowed");
  }
}

class Reader {
 public:
  explicit Reader(const Value& job) : job_(job) {}

  SweepPoints read() {
    const Value* given = job_.find("sweep");
    if (given == nullptr || given->is_null()) return points_;
    const Value sweep = as_written(*given);
    if (sweep.is_list()) {
      read_list(sweep.as_list());
    } else if (sweep.is_map()) {
      read_axes(sweep);
    }
    if (points_.keys.empty()) {
      throw ParamError("sweep",
                       "expected keys with lists of values, as in {optimizer.sgd.learning_rate: "
                       "[0.05, 0.1]}, or a list of points, found " +
                           to_json(sweep, -1));
    }
    return points_;
  }

 private:
  void read_axes(const Value& map) {
    each_key(map, "", "sweep",
             [&](const std::string& key, const Value& given, const std::string& where) {
               const ParamSpec& spec = spec_of(job_, key, where);
               add_key(key, where);
               points_.values.push_back(axis_of(spec, given, where));
               check_count(points_.size_unbounded(), "sweep");
             });
  }

  Value::List axis_of(const ParamSpec& spec, const Value& given, const std::string& where) {
    if (is_log2(given)) return powers_of_two(spec, given.at("log2"), where);
    if (!given.is_list() || given.as_list().empty()) {
      throw ParamError(
          where, "expected a list of values or {log2: [from, to]}, found " + to_json(given, -1));
    }
    check_count(given.as_list().size(), "sweep");
    Value::List values;
    for (std::size_t i = 0; i < given.as_list().size(); ++i) {
      values.push_back(value_of(spec, given.as_list()[i], indexed(where, i)));
    }
    return values;
  }

  void read_list(const Value::List& list) {
    points_.is_grid = false;
    check_count(list.size(), "sweep");
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string where = indexed("sweep", i);
      if (!list[i].is_map() || list[i].as_map().empty()) {
        throw ParamError(where,
                         "expected a point, as in {optimizer.sgd.learning_rate: 0.1}, found " +
                             to_json(list[i], -1));
      }
      Value::List& point = points_.values.emplace_back(points_.keys.size());
      each_key(list[i], "", where,
               [&](const std::string& key, const Value& given, const std::string& at) {
                 Value& value = slot(point, key);
                 if (!value.is_null()) throw ParamError(at, "is given twice");
                 value = value_of(spec_of(job_, key, at), given, at);
               });
    }
    for (Value::List& point : points_.values) point.resize(points_.keys.size());
  }

  Value& slot(Value::List& point, const std::string& key) {
    const auto at = std::find(points_.keys.begin(), points_.keys.end(), key);
    const auto k = static_cast<std::size_t>(at - points_.keys.begin());
    if (at == points_.keys.end()) points_.keys.push_back(key);
    if (point.size() <= k) point.resize(k + 1);
    return point[k];
  }

  void add_key(const std::string& key, const std::string& where) {
    if (std::find(points_.keys.begin(), points_.keys.end(), key) != points_.keys.end()) {
      throw ParamError(where, "is given twice");
    }
    points_.keys.push_back(key);
  }

  const Value& job_;
  SweepPoints points_;
};

/// "KEY = VALUE, ...": names a point in messages.
std::string text_of(const Point& point) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : point) parts.push_back(key + " = " + to_json(value, -1));
  return join(parts, ", ");
}

Value job_of(const Value& base, const Point& point) {
  Value job = base;
  for (const auto& [key, value] : point) set_path(job, key, value);
  return check_params(job_schema(), job, "");
}

/// The job without what makes many runs of it.
Value single(const Value& job) {
  Value::Map map;
  for (const auto& [key, value] : job.as_map()) {
    if (key != "sweep") map.emplace_back(key, value);
  }
  Value one = std::move(map);
  one.set("repeats", 1);
  return one;
}

/// The points at which check_points looks.
std::set<std::uint32_t> points_to_check(const SweepPoints& points) {
  static constexpr std::uint32_t first_points = 256;
  std::set<std::uint32_t> numbers;
  for (std::uint32_t p = 0; p < std::min(first_points, points.size()); ++p) numbers.insert(p);
  if (points.is_grid) {
    std::uint32_t stride = points.size();
    for (const Value::List& axis : points.values) {
      stride /= static_cast<std::uint32_t>(axis.size());
      for (std::uint32_t i = 0; i < axis.size(); ++i) numbers.insert(i * stride);
    }
    return numbers;
  }
  std::set<std::pair<std::size_t, std::string>> seen;
  for (std::uint32_t p = 0; p < points.size(); ++p) {
    for (std::size_t k = 0; k < points.keys.size(); ++k) {
      if (seen.emplace(k, to_json(points.values[p][k], -1)).second) numbers.insert(p);
    }
  }
  return numbers;
}

/// Which key of a point a fault at `path` of its job is about, if that is clear.
std::string key_at_fault(const Point& point, const std::string& path) {
  for (const auto& [key, value] : point) {
    const bool is_it = path == key || path.starts_with(key + ".") || path.starts_with(key + "[");
    if (is_it) return key;
  }
  return point.size() == 1 ? point.front().first : "";
}

}  // namespace

std::uint64_t SweepPoints::size_unbounded() const {
  if (!is_grid) return values.size();
  std::uint64_t size = 1;
  for (const Value::List& axis : values) size *= axis.size();
  return size;
}

Point SweepPoints::point(std::uint32_t number) const {
  Point result;
  std::uint32_t stride = size();
  for (std::size_t k = 0; k < keys.size(); ++k) {
    if (is_grid) {
      const auto count = static_cast<std::uint32_t>(values[k].size());
      stride /= count;
      result.emplace_back(keys[k], values[k][number / stride % count]);
    } else if (!values[number][k].is_null()) {
      result.emplace_back(keys[k], values[number][k]);
    }
  }
  return result;
}

SweepPoints sweep_points(const Value& job) {
  return Reader(job).read();
}

Value normal_sweep(const Value& tree) {
  const SweepPoints points = sweep_points(tree);
  if (points.keys.empty()) return tree;
  Value result = tree;
  Value normal = Value::map();
  normal.set("keys", Value::List(points.keys.begin(), points.keys.end()));
  normal.set(points.is_grid ? "grid" : "points",
             Value::List(points.values.begin(), points.values.end()));
  result.set("sweep", std::move(normal));
  const Point first = points.point(0);
  for (const auto& [key, value] : first) {
    const Value* given = find_path(tree, key);
    if ((given != nullptr && !given->is_null()) || !find_spec(job_schema(), key)->required)
      continue;
    const std::size_t k = static_cast<std::size_t>(
        std::find(points.keys.begin(), points.keys.end(), key) - points.keys.begin());
    const auto leaves_out = [&](const Value::List& point) { return point[k].is_null(); };
    if (!points.is_grid && std::any_of(points.values.begin(), points.values.end(), leaves_out)) {
      continue;
    }
    set_path(result, key, value);
  }
  return result;
}

namespace {

/// Seeds of all runs must be whole numbers that a job can hold.
void check_seeds(const Value& checked, const SweepPoints& points) {
  std::int64_t seed_max = checked.at("seed").as_integer();
  for (std::uint32_t p = 0; p < points.size(); ++p) {
    for (const auto& [key, value] : points.point(p)) {
      if (key == "seed") seed_max = std::max(seed_max, value.as_integer());
    }
  }
  if (seed_max > std::numeric_limits<std::int64_t>::max() - checked.at("repeats").as_integer()) {
    throw ParamError(
        "repeats", "the seed " + std::to_string(seed_max) + " is too large to be counted on from");
  }
}

}  // namespace

void check_points(const Value& checked, const std::function<void(const Value&)>& check) {
  const SweepPoints points = sweep_points(checked);
  const Value base = single(checked);
  check_count(
      std::uint64_t{points.size()} * static_cast<std::uint64_t>(checked.at("repeats").as_integer()),
      "repeats");
  check_seeds(checked, points);
  if (points.keys.empty()) return check(base);
  for (const std::uint32_t number : points_to_check(points)) {
    const Point point = points.point(number);
    try {
      check(job_of(base, point));
    } catch (const ParamError& error) {
      const std::string key = key_at_fault(point, error.path());
      throw ParamError(key.empty() ? "sweep" : "sweep." + key,
                       "with " + text_of(point) + ": " + error.what());
    }
  }
}

void visit_swept(Value& job, ParamType type,
                 const std::function<void(const ParamSpec&, Value&)>& visit) {
  const std::function<void(Value&, const std::string&)> walk = [&](Value& value,
                                                                   const std::string& key) {
    if (value.is_map()) {
      for (auto& [name, inner] : value.as_map()) walk(inner, joined(key, name));
    } else if (value.is_list()) {
      for (Value& inner : value.as_list()) walk(inner, key);
    } else if (const ParamSpec* spec = find_spec(job_schema(), key);
               spec != nullptr && spec->type == type && !value.is_null()) {
      visit(*spec, value);
    }
  };
  Value* sweep = job.find("sweep");
  if (sweep == nullptr) return;
  const Value* keys = sweep->find("keys");
  if (keys == nullptr || !keys->is_list()) return walk(*sweep, "");
  const Value names = *keys;
  const auto walk_row = [&](Value& row) {
    if (!row.is_list()) return;
    for (std::size_t k = 0; k < std::min(row.as_list().size(), names.as_list().size()); ++k) {
      if (names.as_list()[k].is_text()) walk(row.as_list()[k], names.as_list()[k].as_text());
    }
  };
  if (Value* grid = sweep->find("grid")) return walk_row(*grid);
  if (Value* points = sweep->find("points"); points != nullptr && points->is_list()) {
    for (Value& point : points->as_list()) walk_row(point);
  }
}

JobRuns::JobRuns(const Value& checked)
    : base_(single(checked)),
      points_(sweep_points(checked)),
      repeats_(static_cast<std::uint32_t>(checked.at("repeats").as_integer())) {}

std::uint64_t JobRuns::seed(std::uint32_t number) const {
  Value seed = base_.at("seed");
  for (const auto& [key, value] : points_.point(number / repeats_)) {
    if (key == "seed") seed = value;
  }
  return static_cast<std::uint64_t>(seed.as_integer()) + number % repeats_;
}

JobRun JobRuns::run(std::uint32_t number) const {
  PW_CHECK(number < size(), "run " << number << " of " << size());
  JobRun run;
  run.number = number;
  run.swept = points_.point(number / repeats_);
  run.seed = seed(number);
  run.job = job_of(base_, run.swept);
  run.job.set("seed", static_cast<std::int64_t>(run.seed));
  return run;
}

}  // namespace pipewright
