// Plain arrays as Eigen's matrices, row-major as NumPy and PyTorch have them. The layers of this
// folder are templates of their scalar T: float in runs, double where gradients are checked.
#pragma once

#include <Eigen/Core>

#include <type_traits>

#include "core/base/tensor.hpp"

namespace pipewright::transformer {

template <class T>
using RowMajor =
    Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using MatrixOf = std::conditional_t<std::is_const_v<T>, const RowMajor<T>, RowMajor<T>>;

/// [rows, columns] at `data`; a row begins `stride` numbers after the one before it.
template <class T>
auto matrix(T* data, Index rows, Index columns, Index stride) {
  return Eigen::Map<MatrixOf<T>, Eigen::Unaligned, Eigen::OuterStride<>>(
      data, rows, columns, Eigen::OuterStride<>(stride));
}
template <class T>
auto matrix(T* data, Index rows, Index columns) {
  return Eigen::Map<MatrixOf<T>>(data, rows, columns);
}

/// [size] at `data`, for arithmetic entry by entry.
template <class T>
auto array(T* data, Index size) {
  using Array = Eigen::Array<std::remove_const_t<T>, Eigen::Dynamic, 1>;
  return Eigen::Map<std::conditional_t<std::is_const_v<T>, const Array, Array>>(data, size);
}

}  // namespace pipewright::transformer
