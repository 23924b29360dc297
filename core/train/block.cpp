#include "core/train/block.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "core/base/check.hpp"
#include "core/base/error.hpp"

namespace pipewright {

VersionedBlock::VersionedBlock(Tensor weights, std::unique_ptr<Optimizer> optimizer)
    : optimizer_(std::move(optimizer)) {
  slots_.push_back({std::move(weights), 0, 0, 0});
}

VersionedBlock::Pin VersionedBlock::pin(Use use) {
  ++slots_[current_].pins;
  slots_[current_].observed += use == Use::observation;
  Pin pin;
  pin.slot_ = current_;
  pin.version_ = slots_[current_].version;
  return pin;
}

VersionedBlock::Pin VersionedBlock::pin(const Pin& pinned, Use use) {
  weights(pinned);
  ++slots_[pinned.slot_].pins;
  slots_[pinned.slot_].observed += use == Use::observation;
  return pinned;
}

const Tensor& VersionedBlock::weights(const Pin& pin) const {
  const Slot& slot = slots_[pin.slot_];
  PW_CHECK(slot.pins > 0 && slot.version == pin.version_,
           "pinned version " << pin.version_ << " has become version " << slot.version);
  return slot.weights;
}

void VersionedBlock::unpin(const Pin& pin, Use use) {
  Slot& slot = slots_[pin.slot_];
  PW_CHECK(slot.pins > 0 && slot.version == pin.version_,
           "version " << pin.version_ << " is unpinned once too often");
  --slot.pins;
  slot.observed -= use == Use::observation;
}

std::size_t VersionedBlock::free_slot() {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (i != current_ && slots_[i].pins == 0) return i;
  }
  const Tensor& now = slots_[current_].weights;
  slots_.push_back({Tensor(now.dtype(), now.shape()), 0, 0, 0});
  return slots_.size() - 1;
}

/// How long an observation waits depends on who runs when, so what it keeps is not counted.
void VersionedBlock::make_current(std::size_t slot) {
  current_ = slot;
  std::int64_t needed = 0;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    needed += i == current_ || slots_[i].pins > slots_[i].observed;
  }
  needed_max_ = std::max(needed_max_, needed);
}

void VersionedBlock::update(Tensor& gradient) {
  const std::size_t to = slots_[current_].pins == 0 ? current_ : free_slot();
  optimizer_->step(slots_[current_].weights, slots_[to].weights, gradient);
  slots_[to].version = slots_[current_].version + 1;
  make_current(to);
}

void VersionedBlock::assign(const Tensor& weights) {
  // An observation may still have the contents before pinned; a pin is told by its version, which
  // is the same, so it keeps its own slot.
  const std::size_t to = slots_[current_].pins == 0 ? current_ : free_slot();
  slots_[to].version = slots_[current_].version;
  std::memcpy(slots_[to].weights.buffer().data(), weights.buffer().data(), weights.bytes());
  make_current(to);
}

std::int64_t VersionedBlock::bytes() const {
  return needed_max_ * static_cast<std::int64_t>(weights().bytes());
}

void VersionedBlock::archive(Archive& archive) {
  const DType dtype = weights().dtype();
  const Shape shape = weights().shape();
  archive(current_);
  archive(needed_max_);
  slots_.resize(archive.size(slots_.size(), sizeof(std::int64_t) + 2));
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    archive(slot.version);
    bool is_used = i == current_ || slot.pins > 0;
    archive(is_used);
    if (is_used) archive(slot.weights);
    if (!archive.reads()) continue;
    slot.pins = slot.observed = 0;
    if (!is_used) slot.weights = Tensor(dtype, shape);
    if (slot.weights.empty() || slot.weights.dtype() != dtype || slot.weights.shape() != shape) {
      throw DataError("stored weights are not of a block of shape " + shape.text());
    }
  }
  if (current_ >= slots_.size()) throw DataError("stored weights have no current version");
  optimizer_->archive(archive);
}

void VersionedBlock::adopt(const Pin& pin, Use use) {
  if (pin.slot_ >= slots_.size() || slots_[pin.slot_].version != pin.version_) {
    throw DataError("version " + std::to_string(pin.version_) + " of a block was not stored");
  }
  ++slots_[pin.slot_].pins;
  slots_[pin.slot_].observed += use == Use::observation;
}

}  // namespace pipewright
