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
    void archive(Archive& archive) {
      archive(slot_);
      archive(version_);
    }

   private:
    friend class VersionedBlock;
    std::uint64_t slot_ = 0;
    std::int64_t version_ = 0;
  };

  /// Who needs it: the schedule, or somebody who looks on, who may take his time.
  enum class Use : std::uint8_t { schedule, observation };

  WeightVersion version() const { return WeightVersion(slots_[current_].version); }
  const Tensor& weights() const { return slots_[current_].weights; }

  Pin pin(Use use = Use::schedule);
  /// Once more what is pinned already.
  Pin pin(const Pin& pinned, Use use = Use::schedule);
  const Tensor& weights(const Pin& pin) const;
  void unpin(const Pin& pin, Use use = Use::schedule);

  /// The block update: one step of the optimizer; the version grows by one. Uses up `gradient`.
  void update(Tensor& gradient);

  /// Other contents for the same version: what a sync does, when nothing of the block is in flight.
  void assign(const Tensor& weights);

  /// Bytes of as many weights as the schedule has needed at once, the current ones included.
  std::int64_t bytes() const;

  /// Writes or reads weights, versions and optimizer. What was pinned is there again and pinned by
  /// nobody: every pin that was kept is to be given to adopt(). Throws DataError for what is not of
  /// this block.
  void archive(Archive& archive);
  /// Pins what a stored pin stands for. Throws DataError when it is not there.
  void adopt(const Pin& pin, Use use = Use::schedule);

 private:
  struct Slot {
    Tensor weights;
    std::int64_t version = 0;
    int pins = 0;      // of all uses
    int observed = 0;  // of these, for observations
  };

  std::size_t free_slot();
  void make_current(std::size_t slot);

  std::vector<Slot> slots_;
  std::uint64_t current_ = 0;
  std::int64_t needed_max_ = 1;  // versions
  std::unique_ptr<Optimizer> optimizer_;
};

}  // namespace pipewright
