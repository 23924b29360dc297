#include "core/sim/metrics.hpp"

#include <algorithm>

namespace pipewright {

TimelineMetrics::TimelineMetrics(const ScheduleHeader& header)
    : header_(header), versions_(header), busy_(static_cast<std::size_t>(header.rows())) {}

void TimelineMetrics::add(const TimelineEntry& entry) {
  ++actions_;
  makespan_ = std::max(makespan_, entry.end);
  busy_[static_cast<std::size_t>(entry.row.value)] += entry.end - entry.start;
  if (entry.action.kind == ActionKind::forward && entry.action.stage.value + 1 == header_.stages) {
    ++microbatches_;
  }
  versions_.add(entry.row, entry.action);
}

double TimelineMetrics::bubble() const {
  if (makespan_ == Tick(0)) return 0;
  std::int64_t busy = 0;
  for (const Tick row : busy_) busy += row.value;
  const double whole = static_cast<double>(makespan_.value) * static_cast<double>(busy_.size());
  return (whole - static_cast<double>(busy)) / whole;
}

double TimelineMetrics::idle_over_ideal() const {
  const double share = bubble();
  return share >= 1 ? 0 : share / (1 - share);
}

namespace {

Value phase_value(const Histogram& histogram) {
  Value value = Value::map();
  if (histogram.count() == 0) {
    value.set("max", Value());
    value.set("mean", Value());
  } else {
    value.set("max", histogram.max());
    value.set("mean", histogram.mean());
  }
  return value;
}

Value phases_value(const TwoPhases& phases) {
  Value value = Value::map();
  value.set("start_up", phase_value(phases.start_up));
  value.set("steady", phase_value(phases.steady));
  return value;
}

}  // namespace

Value TimelineMetrics::to_value() const {
  Value value = Value::map();
  value.set("makespan_ticks", makespan_.value);
  value.set("bubble", bubble());
  value.set("idle_over_ideal", idle_over_ideal());
  value.set("updates", versions_.updates().value);
  value.set("microbatches", microbatches_);
  value.set("delay_updates", phases_value(versions_.delay()));
  Value stages = Value::list();
  for (int s = 0; s < header_.stages; ++s) {
    const StageVersions& facts = versions_.stages()[static_cast<std::size_t>(s)];
    Tick busy(0);
    for (int r = s; r < header_.rows(); r += header_.stages) busy += this->busy(Row(r));
    Value stage = Value::map();
    stage.set("stage", s);
    stage.set("busy_ticks", busy.value);
    stage.set("staleness_versions", phases_value(facts.staleness));
    stage.set("stash_microbatches_max", facts.stash_microbatches_max);
    stage.set("stash_versions_max", facts.stash_versions_max);
    stages.as_list().push_back(std::move(stage));
  }
  value.set("per_stage", std::move(stages));
  return value;
}

}  // namespace pipewright
