// Tensors as Eigen vectors. Apart from tensor.hpp, because including Eigen costs seconds of
// compiling.
#pragma once

#include <Eigen/Core>

#include "core/base/tensor.hpp"

namespace pipewright {

static_assert(std::is_same_v<Index, Eigen::Index>);

/// All elements as one vector on the tensor's own, aligned storage.
template <class T>
auto vec(Tensor& tensor) {
  return Eigen::Map<Eigen::Vector<T, Eigen::Dynamic>, Eigen::Aligned64>(tensor.data<T>(),
                                                                        tensor.elements());
}
template <class T>
auto vec(const Tensor& tensor) {
  return Eigen::Map<const Eigen::Vector<T, Eigen::Dynamic>, Eigen::Aligned64>(tensor.data<T>(),
                                                                              tensor.elements());
}

}  // namespace pipewright
