// The average over replicas.
#pragma once

#include <vector>

#include "core/base/tensor.hpp"

namespace pipewright {

/// Mean of the replicas' blocks, added in the order of the replicas: both placements and any number
/// of ranks give the same bytes. At least one; all of one type and shape.
Tensor mean_of(const std::vector<const Tensor*>& replicas);

}  // namespace pipewright
