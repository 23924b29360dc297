// The coordinator's part of checkpoints: where they are, and how it counts up again to one.
#include <algorithm>

#include "core/base/error.hpp"
#include "core/train/run_control.hpp"

namespace pipewright {

namespace {

Instruction checkpoint_instruction(Tick tick) {
  Instruction checkpoint;
  checkpoint.kind = Instruction::Kind::checkpoint;
  checkpoint.microbatch = Microbatch(tick.value);
  return checkpoint;
}

}  // namespace

void RunValues::archive(Archive& archive) {
  archive.numbers(losses);
  archive.numbers(update_norms);
  for (auto* list : {&values, &gradients}) {
    archive.each(*list, 17, [&](ObservationValue& one) {
      archive(one.observation);
      archive(one.value);
      bool has_validation = one.validation.has_value();
      archive(has_validation);
      if (!has_validation) return;
      if (!one.validation) one.validation.emplace();
      archive(*one.validation);
    });
  }
}

void RunControl::resume(Tick tick, std::function<std::optional<std::string>()> next_values) {
  replay_.emplace();
  replay_->tick = tick;
  replay_->next_values = std::move(next_values);
}

std::optional<ControlCheckpoint> RunControl::take_checkpoint() {
  return std::exchange(checkpoint_, std::nullopt);
}

bool RunControl::checkpoint_part_stored() {
  if (checkpoint_parts_missing_ == 0) throw ProtocolError("no checkpoint is under way");
  return --checkpoint_parts_missing_ == 0;
}

/// At most one at a time is under way, between two ticks, and not while some rows have a sync
/// behind them and others have not: its messages would cross the cut in both directions.
void RunControl::feed_checkpoint_before(const TimelineEntry& next) {
  if (replay_) return;
  const std::int64_t every = job_.checkpoint->every;
  if (next_checkpoint_ == 0) next_checkpoint_ = every;
  const bool is_due = job_.checkpoint->by_updates ? updates_fed_ >= next_checkpoint_
                                                  : next_checkpoint_ < next.end.value;
  if (!is_due || next.end <= fed_until_ || checkpoint_parts_missing_ > 0 ||
      syncs_fed_ % static_cast<std::int64_t>(rows_.size()) != 0) {
    return;
  }
  Tick tick = fed_until_;
  if (job_.checkpoint->by_updates) {
    next_checkpoint_ = (updates_fed_ / every + 1) * every;
  } else {
    tick = std::max(tick, Tick((next.end.value - 1) / every * every));
    next_checkpoint_ = (tick.value / every + 1) * every;
  }
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    rows_[r].queue.push_back(checkpoint_instruction(tick));
    rows_[r].cuts.push_back(cut_for(static_cast<std::int32_t>(r), tick));
  }
  awaited_.push_back({{}, -1, tick, updates_fed_, true});
  checkpoint_parts_missing_ = static_cast<std::int64_t>(rows_.size()) + 1;
}

/// What is on its way to a row is what its neighbours have sent less what it has used.
Cut RunControl::cut_for(std::int32_t row, Tick tick) const {
  const auto r = static_cast<std::size_t>(row);
  const Stage stage = header_.stage_of(Row(row));
  Cut cut;
  cut.tick = tick;
  cut.observations = observations_fed_;
  if (stage.value > 0) cut.activations = rows_[r - 1].forwards - rows_[r].forwards;
  if (stage.value + 1 < header_.stages) {
    cut.gradients = rows_[r + 1].gradients - rows_[r].backwards;
  }
  if (header_.in_flight_max > 0 && row == 0) {
    for (const RowState& other : rows_) cut.updates += other.updates;
    cut.updates -= rows_[0].updates + rows_[0].admitted;
  }
  return cut;
}

void RunControl::count_fed(const TimelineEntry& entry) {
  RowState& row = at(entry.row);
  const Action& action = entry.action;
  fed_until_ = entry.end;
  switch (action.kind) {
    case ActionKind::forward:
      ++row.forwards;
      row.admitted += action.admitted_by >= Microbatch(0);
      break;
    case ActionKind::backward:
      ++row.backwards;
      row.gradients += action.stage > action.backward_to;
      break;
    case ActionKind::update:
      ++row.updates;
      break;
    case ActionKind::sync:
      ++syncs_fed_;
      break;
  }
}

void RunControl::emit_checkpoint(Tick tick) {
  checkpoint_.emplace();
  checkpoint_->tick = tick;
  Archive archive(checkpoint_->values);
  recorded_.archive(archive);
  recorded_ = {};
}

/// The plan says what happened until then, and the stored values what came of it: given out once
/// more, they leave everything here as it was.
bool RunControl::replay(std::int64_t actions_max) {
  for (std::int64_t i = 0; i < actions_max; ++i) {
    const auto entry = next_planned();
    if (!entry) {
      throw DataError("the checkpoint is of tick " + std::to_string(replay_->tick.value) +
                      ", and the run ends before it");
    }
    if (entry->end > replay_->tick) {
      planned_next_ = entry;
      while (load_values()) {
      }
      if (!values_.empty() || !gradients_.empty() || !replay_->losses.empty() ||
          !replay_->update_norms.empty()) {
        throw DataError("the checkpoint has more values than the run until its tick");
      }
      const std::int64_t every = job_.checkpoint ? job_.checkpoint->every : 1;
      const bool by_updates = job_.checkpoint && job_.checkpoint->by_updates;
      next_checkpoint_ = ((by_updates ? updates_fed_ : replay_->tick.value) / every + 1) * every;
      replay_.reset();
      return true;
    }
    feed_entry(*entry);
    drain_replayed();
  }
  return false;
}

void RunControl::drain_replayed() {
  for (RowState& row : rows_) row.queue.pop_front(row.queue.size());
  for (; !awaited_.empty(); awaited_.pop_front()) {
    const Awaited& front = awaited_.front();
    if (front.observation >= 0) {
      while (values_.empty() || (theory_ && gradients_.empty())) need_values();
      emit_observation(front);
      continue;
    }
    const Action& action = front.entry.action;
    RowState& row = at(front.entry.row);
    if (action.kind == ActionKind::forward && action.stage.value + 1 == header_.stages) {
      row.losses.push_back(take_replayed(replay_->losses));
    }
    if (action.kind == ActionKind::update && theory_) {
      row.update_norms.push_back(take_replayed(replay_->update_norms));
    }
    emit_action(front.entry, std::nullopt);
  }
}

double RunControl::take_replayed(Fifo<double>& values) {
  while (values.empty()) need_values();
  const double value = values.front();
  values.pop_front();
  return value;
}

void RunControl::need_values() {
  if (!load_values()) {
    throw DataError("the checkpoint has fewer values than the run until its tick");
  }
}

bool RunControl::load_values() {
  const auto bytes = replay_->next_values();
  if (!bytes) return false;
  RunValues stored;
  Archive archive(std::string_view{*bytes});
  stored.archive(archive);
  if (!archive.at_end()) throw DataError("the checkpoint's values have something behind them");
  replay_->losses.append(stored.losses.begin(), stored.losses.end());
  replay_->update_norms.append(stored.update_norms.begin(), stored.update_norms.end());
  values_.append(stored.values.begin(), stored.values.end());
  gradients_.append(stored.gradients.begin(), stored.gradients.end());
  return true;
}

}  // namespace pipewright
