// The runs of a job: one for every point of its `sweep`, and of these one for every seed of its
// `repeats`. docs/sweeps.md has the syntax.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/params.hpp"

namespace pipewright {

/// More runs than this are refused: nobody looks at their table, and a list of them must stay
/// small.
inline constexpr std::uint32_t runs_max = 100'000;

/// What a `sweep` says. Values are as the keys' specs want them (whole numbers made reals).
struct SweepPoints {
  std::vector<std::string> keys;  // dotted paths, in the order of the job file
  bool is_grid = true;
  /// Grid: one list per key, of which all combinations are points, the last key's changing fastest.
  /// Otherwise: one list per point, with null where the point leaves a key as the job has it.
  std::vector<Value::List> values;

  std::uint32_t size() const { return static_cast<std::uint32_t>(size_unbounded()); }
  std::uint64_t size_unbounded() const;  // 1 without keys
  /// The keys that a point sets.
  std::vector<std::pair<std::string, Value>> point(std::uint32_t number) const;
};

/// The points of a job, of which only `sweep` need be there and the kinds that its keys go through.
/// Throws ParamError (path `sweep.KEY`, with "[i]" for the i-th value) for keys that no job of
/// these kinds has or that are not single values, for values that do not fit, and for too many.
SweepPoints sweep_points(const Value& job);

/// `tree` with its sweep in the form that check_job returns, in which the order of keys survives a
/// message: {keys: [KEY, ...], grid: [[values of the first key], ...]} or {keys, points: [[a value
/// for each key, or null], ...]}; and with keys that the job needs and only its sweep gives. The
/// rest of the tree is not checked.
Value normal_sweep(const Value& tree);

/// Calls `check` with the jobs of many points: all of them if they are few, else the first ones and
/// those in which a value of a key comes first. A ParamError is thrown on with the point at fault.
/// `checked` fits the schema.
void check_points(const Value& checked, const std::function<void(const Value&)>& check);

/// Calls `visit(spec, value)` on the swept values of a type, in any form of a sweep.
void visit_swept(Value& job, ParamType type,
                 const std::function<void(const ParamSpec&, Value&)>& visit);

struct JobRun {
  std::uint32_t number = 0;  // point * repeats + repeat
  Value job;  // a checked job of one run: no `sweep`, one of `repeats`, its own `seed`
  std::vector<std::pair<std::string, Value>> swept;  // path and value, in the order of the job file
  std::uint64_t seed = 0;                            // that of its point + repeat
};

/// Makes runs when they are asked for: 100,000 of them are no memory problem.
class JobRuns {
 public:
  /// `checked` came from check_job.
  explicit JobRuns(const Value& checked);

  std::uint32_t size() const { return points_.size() * repeats_; }
  std::uint32_t points() const { return points_.size(); }
  std::uint32_t repeats() const { return repeats_; }
  /// The job has `sweep`, or more than one of `repeats`.
  bool many() const { return !points_.keys.empty() || repeats_ > 1; }
  /// Dotted paths, in the order of the job file.
  const std::vector<std::string>& keys() const { return points_.keys; }
  /// Of a point, without making its job.
  std::vector<std::pair<std::string, Value>> swept(std::uint32_t point) const {
    return points_.point(point);
  }
  /// Of a run, without making its job.
  std::uint64_t seed(std::uint32_t number) const;
  /// Throws ParamError for a combination that check_job has not seen and that does not fit.
  JobRun run(std::uint32_t number) const;

 private:
  Value base_;
  SweepPoints points_;
  std::uint32_t repeats_;
};

}  // namespace pipewright
