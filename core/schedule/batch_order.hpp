// Which batch each microbatch uses (DESIGN.md section 6): microbatch i uses batch i mod `batches`,
// or with a seed a fresh permutation of all batches in every epoch (of `batches` microbatches).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/ids.hpp"

namespace pipewright {

class BatchOrder {
 public:
  /// `batches` 0: as many as there are microbatches, in their order.
  explicit BatchOrder(std::int64_t batches, std::optional<std::uint64_t> shuffle_seed = {})
      : batches_(batches), seed_(shuffle_seed) {}

  /// Depends on the microbatch and the seed alone, whatever was asked for before.
  Batch of(Microbatch m);

 private:
  /// The order of one epoch, by Fisher and Yates.
  struct Epoch {
    std::int64_t number = -1;
    std::vector<std::int64_t> order;
  };

  std::int64_t batches_;
  std::optional<std::uint64_t> seed_;
  // Stages far apart are in different epochs at one time: those of even and odd number are kept.
  std::array<Epoch, 2> epochs_;
};

}  // namespace pipewright
