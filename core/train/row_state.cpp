// The state of a row at a checkpoint, and going on from it.
#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "core/train/row_runner.hpp"

namespace pipewright {

namespace {

/// Of what follows; another one is refused.
constexpr std::uint32_t state_format = 1;

void archive_message(Archive& archive, Message& message) {
  archive(message.kind);
  archive(message.from_stage);
  archive(message.to_row);
  archive(message.microbatch);
  archive(message.replica);
  archive(message.weight_version);
  archive(message.sent);
  archive(message.arrival);
  archive(message.tensor);
}

void archive_queue(Archive& archive, LinkQueue& queue) {
  archive(queue.free);
  archive(queue.last_arrival);
}

/// Fifo has no resize.
template <class T, class Walk>
void each_of(Archive& archive, Fifo<T>& queue, std::size_t bytes_each, Walk&& walk) {
  const std::size_t count = archive.size(queue.size(), bytes_each);
  while (queue.size() < count) queue.push_back({});
  for (T& element : queue) walk(element);
}

}  // namespace

/// What is here already of what was on its way, and (in store_in_flight) what is still to come. The
/// state does not wait for it: the row goes on.
void RowRunner::checkpoint() {
  PW_CHECK(!held_ && !setup_.rule && sync_phase_ == SyncPhase::gathering,
           describe() << " is in the middle of an action");
  PW_CHECK(!passed_ && !cuts_.empty(), describe() << " has another one under way");
  passed_.emplace(PassedCut{});  // clang 14 takes it for not constructible by default
  passed_->cut = cuts_.front();
  passed_->missing = passed_->cut.in_flight();
  cuts_.pop_front();
  Archive archive(passed_->bytes);
  archive_state(archive, passed_->cut.observations);
  for (const auto* inbox : {&activations_, &gradients_, &sync_messages_}) {
    for (const Message& message : *inbox) store_in_flight(message);
  }
}

/// A message of a neighbour's action before the cut; those of later ones are sent again.
void RowRunner::store_in_flight(const Message& message) {
  const bool counts = message.kind == MessageKind::activation ||
                      message.kind == MessageKind::gradient || message.kind == MessageKind::updated;
  if (!counts || message.sent > passed_->cut.tick) return;
  PW_CHECK(passed_->missing > 0, describe() << " has more on its way than was planned");
  --passed_->missing;
  Archive archive(passed_->bytes);
  archive_message(archive, const_cast<Message&>(message));  // writes only
}

std::optional<RowCheckpoint> RowRunner::take_checkpoint() {
  if (!passed_ || passed_->missing > 0) return std::nullopt;
  RowCheckpoint state{passed_->cut.tick, std::move(passed_->bytes)};
  passed_.reset();
  return state;
}

void RowRunner::restore(std::string_view state) {
  PW_CHECK(program_.empty() && contents_ == 1, describe() << " has begun already");
  Archive archive(state);
  archive_state(archive, 0);
  while (!archive.at_end()) {
    Message message;
    archive_message(archive, message);
    deliver(std::move(message));
  }
  report_.bytes_to_next = bytes_to_next_;
  report_.bytes_to_previous = bytes_to_previous_;
}

void RowRunner::archive_state(Archive& archive, std::int64_t observations) {
  std::uint32_t format = state_format;
  Row row = setup_.row;
  archive(format);
  archive(row);
  if (format != state_format || row != setup_.row) {
    throw DataError("the stored state is of row " + std::to_string(row.value) + " in format " +
                    std::to_string(format) + ", not of row " + std::to_string(setup_.row.value) +
                    " in format " + std::to_string(state_format));
  }
  archive(clock_);
  archive_queue(archive, to_next_);
  archive_queue(archive, to_previous_);
  for (VersionedBlock& block : setup_.blocks) block.archive(archive);
  if (setup_.outer) {
    setup_.outer->archive(archive);
    archive(last_synced_);
  }
  archive_pins(archive, observations);
  archive.each(gradients_due_, 16, [&](Gradient& gradient) {
    archive(gradient.microbatch);
    archive(gradient.replica);
    archive(gradient.count);
    archive(gradient.sum);
  });
  archive.each(forwards_ahead_, sizeof(Microbatch), archive);
  archive(next_forward_);
  archive(messages_sent_);
  archive(bytes_to_next_);
  archive(bytes_to_previous_);
  archive(stash_bytes_max_);
  archive(activation_bytes_max_);
}

void RowRunner::archive_pins(Archive& archive, std::int64_t observations) {
  const auto pin = [&](VersionedBlock& block, VersionedBlock::Pin& pinned,
                       VersionedBlock::Use use) {
    pinned.archive(archive);
    if (archive.reads()) block.adopt(pinned, use);
  };
  archive.each(stash_, 32, [&](Stashed& stashed) {
    archive(stashed.microbatch);
    archive(stashed.replica);
    if (stashed.replica < Replica(0) || stashed.replica.value >= setup_.header.replicas) {
      throw DataError("the stored state has a replica that is not there");
    }
    pin(block_of(stashed.replica), stashed.pin, VersionedBlock::Use::schedule);
    archive.each(stashed.saved.tensors, 1, archive);
    if (archive.reads()) stash_bytes_ += static_cast<std::int64_t>(stashed.saved.bytes());
  });
  VersionedBlock& block = setup_.blocks.front();
  each_of(archive, superseded_, 24, [&](Superseded& old) {
    archive(old.by);
    pin(block, old.pin, VersionedBlock::Use::schedule);
  });
  // Those below were given to all rows, and are over when the checkpoint is complete.
  while (!kept_observations_.empty() && kept_observations_.front().number < observations) {
    block.unpin(kept_observations_.front().pin, VersionedBlock::Use::observation);
    kept_observations_.pop_front();
  }
  each_of(archive, kept_observations_, 24, [&](KeptObservation& kept) {
    archive(kept.number);
    pin(block, kept.pin, VersionedBlock::Use::observation);
    if (!archive.reads()) return;
    observations_.push_back({});
    observations_.back().number = kept.number;
    observations_.back().pin = block.pin(kept.pin, VersionedBlock::Use::observation);
    observations_.back().contents = ++contents_;
  });
  if (archive.reads()) ++contents_;
}

}  // namespace pipewright
