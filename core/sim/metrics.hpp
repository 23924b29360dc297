// What a timeline costs and what it does to the weights: makespan, bubble, staleness, delay, stash.
// The same numbers for a plan and for a run, which differ only in where the entries come from.
#pragma once

#include <vector>

#include "core/base/value.hpp"
#include "core/schedule/versions.hpp"
#include "core/sim/timeline.hpp"

namespace pipewright {

class TimelineMetrics {
 public:
  explicit TimelineMetrics(const ScheduleHeader& header);

  /// Takes the entries in the global order.
  void add(const TimelineEntry& entry);

  const ScheduleHeader& header() const { return header_; }
  Tick makespan() const { return makespan_; }
  std::int64_t actions() const { return actions_; }
  /// Microbatches that have been through the last stage.
  std::int64_t microbatches() const { return microbatches_; }
  const VersionTracker& versions() const { return versions_; }
  VersionTracker& versions() { return versions_; }
  Tick busy(Row row) const { return busy_[static_cast<std::size_t>(row.value)]; }

  /// Idle ticks / (rows * makespan).
  double bubble() const;
  /// Idle ticks / busy ticks: the other figure that the field calls bubble.
  double idle_over_ideal() const;

  /// {makespan_ticks, bubble, idle_over_ideal, updates, microbatches, delay_updates: {start_up:
  /// {max, mean}, steady: ...}, per_stage: [{stage, busy_ticks, staleness_versions: {start_up,
  /// steady}, stash_microbatches_max, stash_versions_max}]}
  Value to_value() const;

 private:
  ScheduleHeader header_;
  VersionTracker versions_;
  Tick makespan_{0};
  std::int64_t actions_ = 0;
  std::int64_t microbatches_ = 0;
  std::vector<Tick> busy_;
};

}  // namespace pipewright
