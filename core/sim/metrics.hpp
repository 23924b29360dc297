// What a timeline costs and what it does to the weights: makespan, bubble, staleness, delay, stash.
// The same numbers for a plan and for a run, which differ only in where the entries come from.
#pragma once

#include <optional>
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

  /// Activations and gradients that a row has sent to its neighbours.
  struct Messages {
    std::int64_t to_next = 0;
    std::int64_t to_previous = 0;
  };
  const std::vector<Messages>& messages() const { return messages_; }
  std::int64_t messages_sent() const { return messages_sent_; }

  /// Ticks per microbatch in the middle of the run, between backwards of stage 0 that are a
  /// multiple of the number of stages (and so of a steady pattern's length) apart; nothing in a run
  /// too short for that, in rounds, and where a microbatch updates one block only.
  std::optional<double> period() const;
  /// Mean ticks of the rounds that are over; nothing before the first sync.
  std::optional<double> round() const;

  /// {makespan_ticks, bubble, idle_over_ideal, updates, microbatches, period_ticks, round_ticks,
  /// delay_updates: {max, start_up: PHASE, steady: PHASE}, per_stage: [{stage, busy_ticks,
  /// staleness_versions: {max, start_up: PHASE, steady: PHASE}, stash_microbatches_max,
  /// stash_versions_max}]}. A PHASE is {max, mean, bin_width, histogram: [[value, count], ...]}:
  /// values seen, ascending; where they go beyond 100, value stands for bin_width of them from
  /// there on (bin_width is 1, 2, 5, 10, 20, ... so that there are 100 pairs at most).
  Value to_value() const;

 private:
  void measure_period(const TimelineEntry& entry);

  ScheduleHeader header_;
  VersionTracker versions_;
  Tick makespan_{0};
  std::int64_t actions_ = 0;
  std::int64_t microbatches_ = 0;
  std::vector<Tick> busy_;
  std::vector<Messages> messages_;  // per row
  std::int64_t messages_sent_ = 0;
  std::int64_t period_from_ = 0;  // backwards of stage 0 between which the period is taken
  std::int64_t period_to_ = 0;    // 0: it is not
  std::int64_t backwards_ = 0;    // of stage 0
  Tick period_begin_{0}, period_end_{0};
  std::int64_t rounds_ = 0;
  Tick rounds_end_{0};
};

}  // namespace pipewright
