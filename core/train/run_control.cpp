#include "core/train/run_control.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/train/mean.hpp"

namespace pipewright {

namespace {

/// Above this a run would hold and write more values than anybody can look at; it is nearly always
/// a cadence in nanoseconds that was meant in something else.
constexpr std::int64_t observations_max = 20'000'000;
constexpr std::int64_t observations_by_default = 200;

Instruction instruction_of(const Action& action) {
  Instruction instruction;
  switch (action.kind) {
    case ActionKind::forward:
      instruction.kind = Instruction::Kind::forward;
      break;
    case ActionKind::backward:
      instruction.kind = Instruction::Kind::backward;
      break;
    case ActionKind::update:
      instruction.kind = Instruction::Kind::update;
      break;
    case ActionKind::sync:
      instruction.kind = Instruction::Kind::sync;
      break;
  }
  instruction.microbatch = action.microbatch;
  instruction.replica = action.replica;
  instruction.batch = action.batch;
  instruction.read_update = action.read_update;
  instruction.backward_to = action.backward_to;
  instruction.admitted_by = action.admitted_by;
  return instruction;
}

[[noreturn]] void fault(const TimelineEntry& entry, const std::string& what) {
  throw ProtocolError("row " + std::to_string(entry.row.value) + " at " + entry.action.label() +
                      " reports " + what);
}

Instruction observe_instruction(std::int64_t number, std::int64_t given_to_all) {
  Instruction observe;
  observe.kind = Instruction::Kind::observe;
  observe.microbatch = Microbatch(number);
  observe.batch = Batch(given_to_all);
  return observe;
}

}  // namespace

RunControl::RunControl(JobConfig job, ObjectiveShape shape, std::vector<RunSink*> sinks)
    : job_(job.sized(shape)),
      shape_(std::move(shape)),
      sinks_(std::move(sinks)),
      header_(job_.schedule_header()),
      planner_(
          std::make_unique<Simulator>(job_.make_schedule(shape_.batches), job_.cost, job_.link)),
      rows_(static_cast<std::size_t>(header_.rows())),
      metrics_(header_) {
  if (job_.is_real) measured_.emplace(header_.rows());
  if (job_.theory) theory_.emplace(job_, shape_.theory);
}

RunControl::~RunControl() = default;

bool RunControl::plan(std::int64_t actions_max) {
  if (planned_) return true;
  if (!walked_ && !walk(actions_max)) return false;
  planned_ = !replay_ || replay(actions_max);
  return planned_;
}

bool RunControl::walk(std::int64_t actions_max) {
  for (std::int64_t i = 0; i < actions_max; ++i) {
    const auto entry = planner_->next();
    if (!entry) {
      begin_feeding();
      return true;
    }
    ++totals_.actions;
    if (is_kept_) keep(*entry);
    totals_.makespan = entry->end;
    totals_.updates += entry->action.kind == ActionKind::update;
    totals_.microbatches += entry->action.kind == ActionKind::forward &&
                            entry->action.stage.value + 1 == header_.stages;
  }
  return false;
}

void RunControl::begin_feeding() {
  walked_ = true;
  const std::int64_t span =
      job_.observe_by == ObserveBy::updates ? totals_.updates : totals_.makespan.value;
  observe_every_ = job_.observe_by == ObserveBy::evenly
                       ? std::max<std::int64_t>(1, span / observations_by_default)
                       : job_.observe_every;
  if (job_.observe_by == ObserveBy::never) {
    next_observation_ = INT64_MAX;
  } else {
    totals_.observations = 1 + (span + observe_every_ - 1) / observe_every_;
    if (totals_.observations > observations_max) {
      throw ParamError("observe.objective",
                       "asks for the objective " + std::to_string(totals_.observations) +
                           " times in this run; at most " + std::to_string(observations_max) +
                           " are allowed: choose a larger distance");
    }
  }
  if (is_kept_) {
    planner_.reset();
  } else {
    planner_ =
        std::make_unique<Simulator>(job_.make_schedule(shape_.batches), job_.cost, job_.link);
  }
  stability_ = job_.observe_by == ObserveBy::never
                   ? Stability(totals_.microbatches, Stability::Of::losses)
                   : Stability(totals_.observations);
  for (RunSink* sink : sinks_) sink->begin(header_);
}

/// A plan of a few megabytes is not made twice.
void RunControl::keep(const TimelineEntry& entry) {
  static constexpr std::size_t kept_max = 100'000;
  if (plan_.size() < kept_max) {
    plan_.push_back(entry);
  } else {
    plan_ = {};
    is_kept_ = false;
  }
}

std::optional<TimelineEntry> RunControl::next_planned() {
  if (planned_next_) return std::exchange(planned_next_, std::nullopt);
  if (!is_kept_) return planner_->next();
  if (plan_.empty()) return std::nullopt;
  const TimelineEntry entry = plan_.front();
  plan_.pop_front();
  return entry;
}

/// How far the plan is handed out ahead of what has come out. Real rows do not keep to the plan's
/// pace: none may run out of work because another is far behind.
bool RunControl::wants_more(std::size_t ahead_per_row) const {
  const std::size_t held = awaited_.size() + (measured_ ? measured_->held() : 0);
  return held < ahead_per_row * rows_.size() ||
         (measured_ && measured_->has_row_with_less_than(ahead_per_row / 2));
}

void RunControl::feed(std::size_t ahead_per_row) {
  while (!fed_all_ && wants_more(ahead_per_row)) {
    const auto entry = next_planned();
    if (entry) {
      feed_entry(*entry);
    } else {
      feed_end();
    }
  }
}

void RunControl::feed_end() {
  // The state at the end is always observed, whatever the cadence.
  if (job_.observe_by == ObserveBy::updates) {
    if (observations_fed_ < totals_.observations) {
      feed_observation(totals_.makespan, totals_.updates);
    }
  } else if (job_.observe_by != ObserveBy::never) {
    for (; next_observation_ < totals_.makespan.value; next_observation_ += observe_every_) {
      feed_observation(Tick(next_observation_), updates_fed_);
    }
    feed_observation(totals_.makespan, updates_fed_);
  }
  fed_all_ = true;
}

void RunControl::feed_entry(const TimelineEntry& entry) {
  if (checkpoints_) feed_checkpoint_before(entry);
  const bool is_update = entry.action.kind == ActionKind::update;
  const bool by_updates = job_.observe_by == ObserveBy::updates;
  if (by_updates && next_observation_ == 0) {
    feed_observation(Tick(0), 0);
    next_observation_ = observe_every_;
  }
  // What is observed at a tick counts all that has ended by it: before the first that ends later.
  while (!by_updates && next_observation_ < entry.end.value) {
    feed_observation(Tick(next_observation_), updates_fed_);
    next_observation_ += observe_every_;
  }
  if (by_updates && is_update && header_.one_block) {
    feed_observations_by_k(entry.row, entry.action.microbatch);
  }
  at(entry.row).queue.push_back(instruction_of(entry.action));
  if (checkpoints_ || replay_) count_fed(entry);
  if (measured_) {
    measured_->expect(entry.row, entry.action);
    for (RunSink* sink : sinks_) sink->planned(entry);
  } else {
    awaited_.push_back({entry, -1, Tick(0), 0, false});
  }
  if (!is_update) return;
  ++updates_fed_;
  if (by_updates && header_.one_block) {
    count_update_by_k(entry);
  } else if (by_updates && updates_fed_ == next_observation_) {
    feed_observation(entry.end, updates_fed_);
    next_observation_ += observe_every_;
  }
}

/// RPD's updates may end in another order than that of k, in which its curve counts them: a row
/// comes to an observation of the first u updates before its first update with k >= u.
void RunControl::feed_observations_by_k(Row row, Microbatch k) {
  RowState& state = at(row);
  while (state.observations_fed < totals_.observations - 1 &&
         state.observations_fed * observe_every_ <= k.value) {
    const std::int64_t number = state.observations_fed++;
    // Only a checkpoint wants to know that others come to it later.
    state.queue.push_back(
        observe_instruction(number, checkpoints_ ? observations_fed_ : number + 1));
  }
}

void RunControl::count_update_by_k(const TimelineEntry& entry) {
  updates_ahead_.push_back(entry.action.microbatch.value);
  while (true) {
    const auto next = std::find(updates_ahead_.begin(), updates_ahead_.end(), updates_in_order_);
    if (next == updates_ahead_.end()) return;
    updates_ahead_.erase(next);
    ++updates_in_order_;
    if (updates_in_order_ == next_observation_ && updates_in_order_ < totals_.updates) {
      feed_observation(entry.end, updates_in_order_);
      next_observation_ += observe_every_;
    }
  }
}

void RunControl::feed_observation(Tick tick, std::int64_t updates) {
  const std::int64_t number = observations_fed_++;
  for (RowState& row : rows_) {
    // A row that has gone beyond it already has it.
    if (row.observations_fed > number) continue;
    row.queue.push_back(observe_instruction(number, number + 1));
    row.observations_fed = number + 1;
  }
  awaited_.push_back({{}, number, tick, updates, false});
}

std::optional<Window> RunControl::next_window(Row row, std::size_t size) {
  if (!planned_ || divergence_) return std::nullopt;
  RowState& state = at(row);
  // Two windows per row: one under way, one to come.
  if (state.queue.size() < size) feed(2 * size);
  Window window;
  window.row = row;
  const std::size_t count = std::min(size, state.queue.size());
  window.instructions.assign(state.queue.begin(), state.queue.begin() + count);
  state.queue.pop_front(count);
  for (const Instruction& instruction : window.instructions) {
    if (instruction.kind != Instruction::Kind::checkpoint) continue;
    window.cuts.push_back(state.cuts.front());
    state.cuts.pop_front();
  }
  window.last = fed_all_ && state.queue.empty();
  if (window.instructions.empty() && (!window.last || state.told_last)) return std::nullopt;
  state.told_last = window.last;
  return window;
}

void RunControl::on_report(const RowReport& report) {
  RowState& row = at(report.row);
  if (measured_) {
    for (const ActionRecord& record : report.records) measured_->add(report.row, record);
    row.observed.append(report.observed.begin(), report.observed.end());
  } else {
    row.records.append(report.records.begin(), report.records.end());
  }
  row.losses.append(report.losses.begin(), report.losses.end());
  values_.append(report.values.begin(), report.values.end());
  row.update_norms.append(report.update_norms.begin(), report.update_norms.end());
  gradients_.append(report.gradients.begin(), report.gradients.end());
  row.bytes_to_next += report.bytes_to_next;
  row.bytes_to_previous += report.bytes_to_previous;
  drain();
}

void RunControl::drain() {
  if (measured_) return drain_measured();
  while (!awaited_.empty() && !divergence_) {
    const Awaited& front = awaited_.front();
    if (front.is_checkpoint) {
      emit_checkpoint(front.tick);
    } else if (!(front.observation < 0 ? emit_planned(front.entry) : emit_observation(front))) {
      return;
    }
    awaited_.pop_front();
  }
}

/// Actions in the order of their measured ends; an observation when all that it counts is out.
void RunControl::drain_measured() {
  while (!divergence_) {
    if (!awaited_.empty() && emit_observation(awaited_.front())) {
      awaited_.pop_front();
      continue;
    }
    const auto done = measured_->next();
    if (!done) return;
    emit_action(done->entry, done->weight_version);
  }
}

bool RunControl::emit_planned(const TimelineEntry& planned) {
  RowState& row = at(planned.row);
  if (row.records.empty()) return false;
  const ActionRecord record = row.records.front();
  row.records.pop_front();
  if (record.start != planned.start || record.end != planned.end) {
    fault(planned, "ticks " + std::to_string(record.start.value) + " to " +
                       std::to_string(record.end.value) + ", planned were " +
                       std::to_string(planned.start.value) + " to " +
                       std::to_string(planned.end.value));
  }
  emit_action(planned, record.weight_version);
  return true;
}

/// `version` is what the row says; nothing where no row is asked.
void RunControl::emit_action(const TimelineEntry& entry, std::optional<WeightVersion> version) {
  metrics_.add(entry);
  const bool is_forward = entry.action.kind == ActionKind::forward;
  if (version && (entry.action.kind == ActionKind::update || is_forward)) {
    const WeightVersion expected =
        is_forward ? metrics_.versions().last_read(entry.row)
                   : metrics_.versions().version(entry.row, entry.action.replica);
    if (*version != expected) {
      fault(entry, "weight version " + std::to_string(version->value) + ", by the schedule " +
                       std::to_string(expected.value));
    }
  }
  if (theory_ && entry.action.kind == ActionKind::update) {
    RowState& row = at(entry.row);
    if (row.update_norms.empty()) fault(entry, "no norm of its gradient");
    theory_->update(row.update_norms.front());
    if (checkpoints_ && !replay_) recorded_.update_norms.push_back(row.update_norms.front());
    row.update_norms.pop_front();
  }
  for (RunSink* sink : sinks_) sink->action(entry);
  if (is_forward && entry.action.stage.value + 1 == header_.stages) {
    RowState& row = at(entry.row);
    if (row.losses.empty()) fault(entry, "no loss");
    const double loss = row.losses.front();
    row.losses.pop_front();
    if (checkpoints_ && !replay_) recorded_.losses.push_back(loss);
    loss_last_ = loss;
    if (job_.observe_by == ObserveBy::never) stability_.add(entry.end, loss);
    for (RunSink* sink : sinks_) sink->loss(entry.end, entry.action.microbatch, loss);
    check_finite(loss, entry.end, "the loss of the last stage");
  }
}

/// The latest end among the actions that the observation counts, once all of them are out.
std::optional<Tick> RunControl::measured_tick_of_observation() const {
  Tick latest = observed_until_;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const auto& observed = rows_[r].observed;
    if (observed.empty() ||
        measured_->given_until(Row(static_cast<std::int32_t>(r))) < observed.front()) {
      return std::nullopt;
    }
    latest = std::max(latest, observed.front());
  }
  return latest;
}

bool RunControl::emit_observation(const Awaited& awaited) {
  if (values_.empty() || (theory_ && gradients_.empty())) return false;
  Tick tick = awaited.tick;
  if (measured_) {
    const auto measured = measured_tick_of_observation();
    if (!measured) return false;
    tick = observed_until_ = *measured;
    for (RowState& row : rows_) row.observed.pop_front();
  }
  const auto take = [&](Fifo<ObservationValue>& values, std::vector<ObservationValue>& record) {
    const ObservationValue observed = values.front();
    values.pop_front();
    if (observed.observation != awaited.observation) {
      throw ProtocolError("observation " + std::to_string(observed.observation) +
                          " came where number " + std::to_string(awaited.observation) +
                          " was to come");
    }
    if (checkpoints_ && !replay_) record.push_back(observed);
    return observed;
  };
  const ObservationValue observed = take(values_, recorded_.values);
  const double value = observed.value;
  if (!objective_first_) objective_first_ = value;
  stability_.add(tick, value);
  objective_last_ = value;
  if (!objective_best_ || value < *objective_best_) objective_best_ = value;
  note_target(tick, awaited.updates, value);
  const UpdateCount updates(awaited.updates);
  for (RunSink* sink : sinks_) sink->objective(tick, updates, value);
  if (theory_) {
    const std::int64_t delay = std::max<std::int64_t>(0, metrics_.versions().delay().max());
    const double gradient = take(gradients_, recorded_.gradients).value;
    const TheoryRow row = theory_->observe(tick, updates, value, gradient, delay);
    for (RunSink* sink : sinks_) sink->theory(row);
  }
  check_finite(value, tick, "the objective");
  if (observed.validation) note_validation(tick, updates, *observed.validation);
  return true;
}

void RunControl::note_validation(Tick tick, UpdateCount updates, double value) {
  validation_last_ = value;
  if (!validation_best_ || value < *validation_best_) validation_best_ = value;
  for (RunSink* sink : sinks_) sink->validation(tick, updates, value);
  if (!divergence_) check_finite(value, tick, "the loss on the validation data");
}

/// All that has ended by the observation, in the global order, has been counted by now.
void RunControl::note_target(Tick tick, std::int64_t updates, double value) {
  if (!job_.target || target_ || !(value < *job_.target)) return;
  target_ = Reached{tick, updates, metrics_.microbatches(), metrics_.messages_sent()};
}

void RunControl::check_finite(double value, Tick tick, const char* what) {
  if (!std::isfinite(value)) {
    divergence_ = Divergence{tick, std::string(what) + " is " + format_number(value)};
  }
}

void RunControl::on_final(RowFinal final) {
  at(final.row).final = std::move(final);
}

bool RunControl::finished() const {
  if (divergence_) return true;
  if (!fed_all_ || !awaited_.empty() || (measured_ && measured_->held() > 0)) return false;
  for (const RowState& row : rows_) {
    if (!row.final) return false;
  }
  return true;
}

Tensor RunControl::weights() const {
  if (divergence_) return {};
  Tensor all(shape_.dtype, {shape_.parameters()});
  std::size_t offset = 0;  // in bytes
  for (int s = 0; s < header_.stages; ++s) {
    std::vector<const Tensor*> replicas;
    for (int r = s; r < header_.rows(); r += header_.stages) {
      for (const Tensor& block : rows_[static_cast<std::size_t>(r)].final->weights) {
        replicas.push_back(&block);
      }
    }
    const Tensor mean = mean_of(replicas);
    std::memcpy(all.buffer().data() + offset, mean.buffer().data(), mean.bytes());
    offset += mean.bytes();
  }
  return all;
}

}  // namespace pipewright
