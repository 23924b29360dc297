// The weights of one block of one replica, exact in their versions.
#pragma once

#include <memory>
#include <vector>

#include "core/base/ids.hpp"
#include "core/base/tensor.hpp"
#include "core/train/optimizer.hpp"

namespace pipewright {

/// Weights as they are now, and older versions for as long as somebody has them pinned (a stash
/// between F and B, an observation that waits for its turn). An update of pinned weights writes to
/// other storage; otherwise it works in place.
class VersionedBlock {
 public:
  VersionedBlock(Tensor weights, std::unique_ptr<Optimizer> optimizer);

  /// A version that stays as it is until it is unpinned.
  class Pin {
   public:
    Pin() = default;
    WeightVersion version() const { return WeightVersion(version_); }

   private:
    friend class VersionedBlock;
    std::size_t slot_ = 0;
    std::int64_t version_ = 0;
  };

  WeightVersion version() const { return WeightVersion(slots_[current_].version); }
  const Tensor& weights() const { return slots_[current_].weights; }

  Pin pin();
  /// Once more what is pinned already.
  Pin pin(const Pin& pinned);
  const Tensor& weights(const Pin& pin) const;
  void unpin(const Pin& pin);

  /// The block update: one step of the optimizer; the version grows by one. Uses up `gradient`.
  void update(Tensor& gradient);

  /// Other contents for the same version: what a sync does, when nothing of the block is in flight.
  void assign(const Tensor& weights);

  /// Bytes of all weights held, the current ones included.
  std::int64_t bytes() const;

 private:
  struct Slot {
    Tensor weights;
    std::int64_t version = 0;
    int pins = 0;
  };

  std::size_t free_slot();

  std::vector<Slot> slots_;
  std::size_t current_ = 0;
  std::unique_ptr<Optimizer> optimizer_;
};

}  // namespace pipewright
