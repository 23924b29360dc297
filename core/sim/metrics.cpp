#include "core/sim/metrics.hpp"

#include <algorithm>

namespace pipewright {

TimelineMetrics::TimelineMetrics(const ScheduleHeader& header)
    : header_(header),
      versions_(header),
      busy_(static_cast<std::size_t>(header.rows())),
      messages_(static_cast<std::size_t>(header.rows())) {
  const std::int64_t third = header.microbatches / 3;
  if (header.local_steps == 0 && !header.one_block && third >= header.stages) {
    period_from_ = third;
    period_to_ = third + third / header.stages * header.stages;
  }
}

void TimelineMetrics::add(const TimelineEntry& entry) {
  ++actions_;
  makespan_ = std::max(makespan_, entry.end);
  busy_[static_cast<std::size_t>(entry.row.value)] += entry.end - entry.start;
  Messages& messages = messages_[static_cast<std::size_t>(entry.row.value)];
  switch (entry.action.kind) {
    case ActionKind::forward: {
      const bool is_last = entry.action.stage.value + 1 == header_.stages;
      ++(is_last ? microbatches_ : messages.to_next);
      messages_sent_ += is_last ? 0 : 1;
      break;
    }
    case ActionKind::backward: {
      const bool goes_on = entry.action.stage > entry.action.backward_to;
      messages.to_previous += goes_on;
      messages_sent_ += goes_on;
      if (entry.row == Row(0)) measure_period(entry);
      break;
    }
    case ActionKind::sync:
      rounds_ = std::max(rounds_, entry.action.microbatch.value + 1);
      rounds_end_ = std::max(rounds_end_, entry.end);
      break;
    case ActionKind::update:
      break;
  }
  versions_.add(entry.row, entry.action);
}

void TimelineMetrics::measure_period(const TimelineEntry& entry) {
  ++backwards_;
  if (backwards_ == period_from_) period_begin_ = entry.end;
  if (backwards_ == period_to_) period_end_ = entry.end;
}

std::optional<double> TimelineMetrics::period() const {
  if (period_to_ == 0 || backwards_ < period_to_) return std::nullopt;
  return static_cast<double>((period_end_ - period_begin_).value) /
         static_cast<double>(period_to_ - period_from_);
}

std::optional<double> TimelineMetrics::round() const {
  if (rounds_ == 0) return std::nullopt;
  return static_cast<double>(rounds_end_.value) / static_cast<double>(rounds_);
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

constexpr std::int64_t bins_max = 100;

/// The least of 1, 2, 5, 10, 20, ... with which values up to `max` need no more than bins_max bins.
std::int64_t bin_width_for(std::int64_t max) {
  for (std::int64_t power = 1;; power *= 10) {
    for (const std::int64_t digit : {1, 2, 5}) {
      if (max / (digit * power) < bins_max) return digit * power;
    }
  }
}

Value bins_of(const Histogram& histogram, std::int64_t width) {
  Value bins = Value::list();
  const auto& counts = histogram.counts();
  const auto step = static_cast<std::size_t>(width);
  for (std::size_t first = 0; first < counts.size(); first += step) {
    std::int64_t sum = 0;
    for (std::size_t i = first; i < std::min(counts.size(), first + step); ++i) sum += counts[i];
    if (sum == 0) continue;
    Value::List bin;
    bin.emplace_back(static_cast<std::int64_t>(first));
    bin.emplace_back(sum);
    bins.as_list().emplace_back(std::move(bin));
  }
  return bins;
}

Value phase_value(const Histogram& histogram) {
  const bool is_empty = histogram.count() == 0;
  const std::int64_t width = bin_width_for(histogram.max());
  Value value = Value::map();
  value.set("max", is_empty ? Value() : Value(histogram.max()));
  value.set("mean", is_empty ? Value() : Value(histogram.mean()));
  value.set("bin_width", width);
  value.set("histogram", bins_of(histogram, width));
  return value;
}

Value optional_value(const std::optional<double>& number) {
  return number ? Value(*number) : Value();
}

Value phases_value(const TwoPhases& phases) {
  Value value = Value::map();
  value.set("max", phases.max() < 0 ? Value() : Value(phases.max()));
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
  value.set("period_ticks", optional_value(period()));
  value.set("round_ticks", optional_value(round()));
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
