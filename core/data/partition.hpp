// How a vector of parameters is cut into blocks (DESIGN.md section 6): the first d mod S blocks
// have one more than the others.
#pragma once

#include <cstdint>

#include "core/base/ids.hpp"

namespace pipewright {

struct BlockRange {
  std::int64_t first = 0;
  std::int64_t size = 0;
};

/// The parameters of block `stage` of `stages`; blocks are empty where there are fewer parameters.
constexpr BlockRange block_range(std::int64_t parameters, int stages, Stage stage) {
  const std::int64_t small = parameters / stages;
  const std::int64_t larger = parameters % stages;  // how many blocks have one more
  const std::int64_t s = stage.value;
  return {s * small + (s < larger ? s : larger), small + (s < larger ? 1 : 0)};
}

}  // namespace pipewright
