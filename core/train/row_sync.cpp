// The parts of a row that look at all replicas: syncs, and observations of the average.
#include <algorithm>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "core/base/tensor_math.hpp"
#include "core/train/mean.hpp"
#include "core/train/row_runner.hpp"

namespace pipewright {

namespace {

Tensor difference(const Tensor& a, const Tensor& b) {
  Tensor out(a.dtype(), a.shape());
  if (a.dtype() == DType::float32) {
    vec<float>(out) = vec<float>(a) - vec<float>(b);
  } else {
    vec<double>(out) = vec<double>(a) - vec<double>(b);
  }
  return out;
}

/// Observations are taken in their order, from row to row. `where` is asked only for the error.
template <class Where>
void check_turn(const Message& message, std::int64_t number, std::int64_t part,
                const Where& where) {
  const std::int64_t its_part = message.weight_version.value;
  if (message.microbatch.value == number && its_part == part) return;
  throw ProtocolError(where() + " received part " + std::to_string(its_part) + " of observation " +
                      std::to_string(message.microbatch.value) + ", not part " +
                      std::to_string(part) + " of " + std::to_string(number));
}

}  // namespace

/// A sync is a barrier over all rows and a mean over the replicas. The row of replica 0 of a stage
/// gathers the others' weights; row 0 waits for those rows and tells when the last one came.
bool RowRunner::sync(const Instruction& instruction) {
  const Microbatch round = instruction.microbatch;
  const Replica me = replica_of_row();
  if (sync_phase_ == SyncPhase::gathering) {
    if (me != Replica(0)) {
      send(MessageKind::weights, Row(stage_.value), round, me, setup_.blocks.front().version(),
           clock_, setup_.blocks.front().weights().clone());
      sync_phase_ = SyncPhase::waiting_for_average;
    } else if (!gather_for_sync(instruction)) {
      return false;
    }
  }
  if (sync_phase_ == SyncPhase::waiting_for_release) {
    const auto release = take(sync_messages_, MessageKind::release, round);
    if (!release) return false;
    sync_start_ = release->arrival;
    average_blocks();
    for (int r = 1; is_spread() && r < setup_.header.replicas; ++r) {
      send(MessageKind::average, setup_.header.row_of(stage_, Replica(r)), round, Replica(r),
           setup_.blocks.front().version(), sync_start_, average_.clone());
    }
  } else if (sync_phase_ == SyncPhase::waiting_for_average) {
    auto average = take(sync_messages_, MessageKind::average, round);
    if (!average) return false;
    sync_start_ = average->arrival;
    average_ = std::move(average->tensor);
    setup_.blocks.front().assign(average_);
    ++contents_;
  }
  sync_phase_ = SyncPhase::gathering;
  finish(sync_start_, ActionKind::sync, round, setup_.blocks.front().version());
  return true;
}

/// True when this row of replica 0 has all that it waits for and may wait for the release (row 0
/// releases itself with the others).
bool RowRunner::gather_for_sync(const Instruction& instruction) {
  const Microbatch round = instruction.microbatch;
  if (is_spread()) {
    gathered_.resize(static_cast<std::size_t>(setup_.header.replicas));
    for (int r = 1; r < setup_.header.replicas; ++r) {
      Tensor& weights = gathered_[static_cast<std::size_t>(r)];
      if (!weights.empty()) continue;
      auto message = take(sync_messages_, MessageKind::weights, round, Replica(r));
      if (!message) return false;
      clock_ = std::max(clock_, message->sent);
      weights = std::move(message->tensor);
    }
  }
  const auto token = [&] { return Tensor::zeros(setup_.model->dtype(), {1}); };
  if (!is_first()) {
    send(MessageKind::barrier, Row(0), round, Replica(0), {}, clock_, token());
    sync_phase_ = SyncPhase::waiting_for_release;
    return true;
  }
  const auto came =
      std::count_if(sync_messages_.begin(), sync_messages_.end(), [&](const Message& message) {
        return message.kind == MessageKind::barrier && message.microbatch == round;
      });
  if (came + 1 < setup_.header.stages) return false;
  Tick last = clock_;
  while (const auto message = take(sync_messages_, MessageKind::barrier, round)) {
    last = std::max(last, message->sent);
  }
  for (int s = 1; s < setup_.header.stages; ++s) {
    send(MessageKind::release, Row(s), round, Replica(0), {}, last, token());
  }
  Message own;
  own.kind = MessageKind::release;
  own.to_row = setup_.row;
  own.microbatch = round;
  own.arrival = last;
  own.tensor = token();
  sync_messages_.push_back(std::move(own));
  sync_phase_ = SyncPhase::waiting_for_release;
  return true;
}

/// Sets all replicas of this row to the average, or to where the outer optimizer goes from the
/// weights of the last sync with (last - average) as its gradient (DiLoCo, arXiv 2311.08105,
/// algorithm 1).
void RowRunner::average_blocks() {
  std::vector<const Tensor*> replicas;
  for (const VersionedBlock& block : setup_.blocks) replicas.push_back(&block.weights());
  for (std::size_t r = 1; r < gathered_.size(); ++r) replicas.push_back(&gathered_[r]);
  average_ = mean_of(replicas);
  gathered_.clear();
  if (setup_.outer) {
    Tensor gradient = difference(last_synced_, average_);
    setup_.outer->step(last_synced_, average_, gradient);
    last_synced_ = average_.clone();
  }
  for (VersionedBlock& block : setup_.blocks) block.assign(average_);
  ++contents_;
}

void RowRunner::observe(const Instruction& instruction) {
  if (time_.is_real()) report_.observed.push_back(clock_);
  const Microbatch number = instruction.microbatch;
  if (replica_of_row() != Replica(0)) {
    // The contents' name travels as the version.
    send(MessageKind::observed, Row(stage_.value), number, replica_of_row(),
         WeightVersion(static_cast<std::int64_t>(contents_)), clock_,
         setup_.blocks.front().weights().clone());
    return;
  }
  Observation observation;
  observation.number = number.value;
  if (setup_.header.replicas == 1) {
    observation.pin = setup_.blocks.front().pin(VersionedBlock::Use::observation);
    observation.contents = contents_;
    keep_observation(number.value, instruction.batch.value);
  } else {
    const auto count = static_cast<std::size_t>(setup_.header.replicas);
    observation.replicas.resize(count);
    observation.replica_contents.resize(count);
    observation.replica_contents[0] = static_cast<std::int64_t>(contents_);
    observation.replicas_missing = is_spread() ? setup_.header.replicas - 1 : 0;
    if (is_spread()) {
      observation.replicas[0] = setup_.blocks.front().weights().clone();
    } else {
      finish_average(observation);
    }
  }
  observations_.push_back(std::move(observation));
  continue_observations();
}

/// An observation that some rows come to later may have a checkpoint between them, after which it
/// is begun again.
void RowRunner::keep_observation(std::int64_t number, std::int64_t given_to_all) {
  VersionedBlock& block = setup_.blocks.front();
  while (!kept_observations_.empty() && kept_observations_.front().number < given_to_all) {
    block.unpin(kept_observations_.front().pin, VersionedBlock::Use::observation);
    kept_observations_.pop_front();
  }
  if (number < given_to_all) return;
  kept_observations_.push_back({number, block.pin(VersionedBlock::Use::observation)});
}

/// The average over the replicas, under a new name if any of them has changed since the last.
void RowRunner::finish_average(Observation& observation) {
  std::vector<const Tensor*> replicas;
  if (is_spread()) {
    for (const Tensor& weights : observation.replicas) replicas.push_back(&weights);
  } else {
    for (const VersionedBlock& block : setup_.blocks) replicas.push_back(&block.weights());
  }
  observation.average = mean_of(replicas);
  if (observation.replica_contents != averaged_contents_) {
    averaged_contents_ = observation.replica_contents;
    ++averaged_id_;
  }
  observation.contents = averaged_id_;
  observation.replicas.clear();
}

bool RowRunner::complete(Observation& observation) {
  if (observation.replicas_missing == 0) return true;
  for (int r = 1; r < setup_.header.replicas; ++r) {
    Tensor& weights = observation.replicas[static_cast<std::size_t>(r)];
    if (!weights.empty()) continue;
    auto message =
        take(sync_messages_, MessageKind::observed, Microbatch(observation.number), Replica(r));
    if (!message) continue;
    weights = std::move(message->tensor);
    observation.replica_contents[static_cast<std::size_t>(r)] = message->weight_version.value;
    --observation.replicas_missing;
  }
  if (observation.replicas_missing > 0) return false;
  finish_average(observation);
  return true;
}

/// True when something could be done.
bool RowRunner::continue_observations() {
  bool moved = false;
  // Of an evaluation in many parts one at a time: the actions have their turn in between.
  while (continue_evaluation()) {
    moved = true;
    if (setup_.model->evaluation_parts() > 1) break;
  }
  while (!going_back_.empty() && !full_gradients_.empty()) {
    check_turn(full_gradients_.front(), going_back_.front().number, 0,
               [this] { return describe(); });
    Tensor back = std::move(full_gradients_.front().tensor);
    full_gradients_.pop_front();
    Observation observation = std::move(going_back_.front());
    going_back_.pop_front();
    give_full_gradient(std::move(observation), std::move(back));
    moved = true;
  }
  return moved;
}

bool RowRunner::continue_evaluation() {
  if (observations_.empty() || !complete(observations_.front())) return false;
  if (is_first()) {
    // What has been sent on and not been used up is bounded.
    const std::int64_t under_way_max = 2 * std::int64_t{setup_.header.stages};
    if (parts_under_way_ >= under_way_max) return false;
    evaluate({});
    return true;
  }
  if (evaluations_.empty()) return false;
  check_turn(evaluations_.front(), observations_.front().number, observations_.front().part,
             [this] { return describe(); });
  Tensor partial = std::move(evaluations_.front().tensor);
  evaluations_.pop_front();
  evaluate(std::move(partial));
  return true;
}

const Tensor& RowRunner::weights_of(const Observation& observation) const {
  const bool is_pinned = setup_.header.replicas == 1;
  return is_pinned ? setup_.blocks.front().weights(observation.pin) : observation.average;
}

/// A link of the chain that gives the full objective, for one part of it.
void RowRunner::evaluate(Tensor partial) {
  Observation& observation = observations_.front();
  const std::int64_t parts = setup_.model->evaluation_parts();
  const std::int64_t part = observation.part++;
  const Microbatch number(observation.number);
  Evaluation value;
  partial = setup_.model->evaluate(part, weights_of(observation), observation.contents,
                                   std::move(partial), value);
  if (!is_last()) {
    send(MessageKind::evaluation, Row(setup_.row.value + 1), number, Replica(0),
         WeightVersion(part), clock_, std::move(partial));
    if (is_first() && parts > 1) ++parts_under_way_;
  } else if (parts > 1 && !is_first()) {
    send(MessageKind::evaluated, Row(0), number, Replica(0), WeightVersion(part), clock_,
         Tensor::zeros(setup_.model->dtype(), {1}));
  }
  if (part + 1 < parts) return;
  if (is_last()) {
    report_.values.push_back({observation.number, value.objective, value.validation});
  }
  end_evaluation();
}

/// The observation is over here, unless its full gradient is wanted: the last stage begins the
/// chain back.
void RowRunner::end_evaluation() {
  Observation observation = std::move(observations_.front());
  observations_.pop_front();
  if (setup_.theory && !is_last()) {
    going_back_.push_back(std::move(observation));
  } else if (setup_.theory) {
    give_full_gradient(std::move(observation), {});
  } else if (setup_.header.replicas == 1) {
    setup_.blocks.front().unpin(observation.pin, VersionedBlock::Use::observation);
  }
}

/// A link of the chain back, after which the observation is over here.
void RowRunner::give_full_gradient(Observation observation, Tensor back) {
  double norm_sq = 0;
  back = setup_.model->full_gradient(weights_of(observation), std::move(back), norm_sq);
  if (is_first()) {
    report_.gradients.push_back({observation.number, norm_sq});
  } else {
    send(MessageKind::full_gradient, Row(setup_.row.value - 1), Microbatch(observation.number),
         Replica(0), {}, clock_, std::move(back));
  }
  if (setup_.header.replicas == 1)
    setup_.blocks.front().unpin(observation.pin, VersionedBlock::Use::observation);
}

}  // namespace pipewright
