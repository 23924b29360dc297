// A job: what one run needs, from the tree that a job file (or a JobSpec message) holds.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/base/params.hpp"
#include "core/objectives/objective.hpp"
#include "core/schedule/kind.hpp"
#include "core/sim/cost.hpp"
#include "core/sim/link.hpp"

namespace pipewright {

/// The schema of a job file: checks, defaults, errors and `pipewright help job` come from it.
const ParamSpec& job_schema();

/// `tree` with defaults filled in. Throws ParamError (dotted path, what was given, what is right)
/// for what does not fit the schema, and for keys that do not fit each other, at the points of a
/// sweep too. Reads no files.
Value check_job(const Value& tree);

/// Throws ParamError when a checked tree, or a part of one, has times in ticks and as durations.
void check_units(Value& tree);

enum class ObserveBy : std::uint8_t { evenly, ticks, updates, never };

/// When a run's state is stored, to go on from after a loss.
struct CheckpointRule {
  std::int64_t every = 0;
  bool by_updates = false;  // else ticks
};

/// A checked job in the form in which it is run.
struct JobConfig {
  std::string name;
  std::string objective_kind;
  Value objective;
  std::string schedule_kind;
  Value schedule;
  std::string optimizer_kind;
  Value optimizer;
  Value init;  // null: the objective's default; text "zeros" or "random"; {npy: [...]}
  CostModel cost;
  LinkModel link;
  bool is_real = false;  // the clock: a tick is then a nanosecond of the machine's
  ObserveBy observe_by = ObserveBy::evenly;
  std::int64_t observe_every = 0;
  bool theory = false;           // also what theory speaks of, at every observation
  std::optional<double> target;  // of the objective
  std::optional<CheckpointRule> checkpoint;
  std::uint64_t seed = 0;
  bool shuffle = false;
  double gradient_noise = 0;  // standard deviation
  int ranks = 0;              // 0: one per stage
  Value tree;                 // what it was made from

  /// From a tree that check_job returned. Throws ParamError for a job of many runs: those are made
  /// by JobRuns (sweep.hpp).
  static JobConfig from(const Value& checked);
  /// The same with the costs that depend on the sizes of the problem: payloads on links with a
  /// bandwidth, and a charged sync.
  JobConfig sized(const ObjectiveShape& shape) const;

  const ObjectiveKind& objective_entry() const;
  const ScheduleKind& schedule_entry() const;
  ScheduleHeader schedule_header() const;
  /// Throws DataError, ParamError (path from the job's root).
  std::unique_ptr<Objective> load_objective(FileSource& files) const;
  std::unique_ptr<ScheduleSource> make_schedule(std::int64_t batches) const;
  /// What theory knows of the schedule under the job's costs and links.
  std::vector<KnownResult> known_results() const;
};

}  // namespace pipewright
