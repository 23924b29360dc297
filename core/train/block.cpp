#include "core/train/block.hpp"

#include <cstring>

#include "core/base/check.hpp"

namespace pipewright {

VersionedBlock::VersionedBlock(Tensor weights, std::unique_ptr<Optimizer> optimizer)
    : optimizer_(std::move(optimizer)) {
  slots_.push_back({std::move(weights), 0, 0});
}

VersionedBlock::Pin VersionedBlock::pin() {
  ++slots_[current_].pins;
  Pin pin;
  pin.slot_ = current_;
  pin.version_ = slots_[current_].version;
  return pin;
}

VersionedBlock::Pin VersionedBlock::pin(const Pin& pinned) {
  weights(pinned);
  ++slots_[pinned.slot_].pins;
  return pinned;
}

const Tensor& VersionedBlock::weights(const Pin& pin) const {
  const Slot& slot = slots_[pin.slot_];
  PW_CHECK(slot.pins > 0 && slot.version == pin.version_,
           "pinned version " << pin.version_ << " has become version " << slot.version);
  return slot.weights;
}

void VersionedBlock::unpin(const Pin& pin) {
  Slot& slot = slots_[pin.slot_];
  PW_CHECK(slot.pins > 0 && slot.version == pin.version_,
           "version " << pin.version_ << " is unpinned once too often");
  --slot.pins;
}

std::size_t VersionedBlock::free_slot() {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (i != current_ && slots_[i].pins == 0) return i;
  }
  const Tensor& now = slots_[current_].weights;
  slots_.push_back({Tensor(now.dtype(), now.shape()), 0, 0});
  return slots_.size() - 1;
}

void VersionedBlock::update(Tensor& gradient) {
  const std::size_t to = slots_[current_].pins == 0 ? current_ : free_slot();
  optimizer_->step(slots_[current_].weights, slots_[to].weights, gradient);
  slots_[to].version = slots_[current_].version + 1;
  current_ = to;
}

void VersionedBlock::assign(const Tensor& weights) {
  // An observation may still have the contents before pinned; a pin is told by its version, which
  // is the same, so it keeps its own slot.
  const std::size_t to = slots_[current_].pins == 0 ? current_ : free_slot();
  slots_[to].version = slots_[current_].version;
  std::memcpy(slots_[to].weights.buffer().data(), weights.buffer().data(), weights.bytes());
  current_ = to;
}

std::int64_t VersionedBlock::bytes() const {
  std::int64_t sum = 0;
  for (const Slot& slot : slots_) sum += static_cast<std::int64_t>(slot.weights.bytes());
  return sum;
}

}  // namespace pipewright
