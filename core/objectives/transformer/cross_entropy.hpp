// The loss of a classification: minus the logarithm of what softmax gives the right class.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/objectives/transformer/matrix.hpp"

namespace pipewright::transformer {

/// The sum, in nats, of the losses of z [n, v] for the classes `targets` [n], added up in their
/// order. Turns z into the probabilities that its backward takes.
template <class T>
double cross_entropy_forward(T* z, const std::int32_t* targets, Index n, Index v) {
  double sum = 0;
  for (Index i = 0; i < n; ++i) {
    auto row = array(z + i * v, v);
    row -= row.maxCoeff();
    sum -= static_cast<double>(row[targets[i]]);
  }
  array(z, n * v) = array(z, n * v).exp();
  for (Index i = 0; i < n; ++i) {
    auto row = array(z + i * v, v);
    const T total = row.sum();
    sum += std::log(static_cast<double>(total));
    row *= 1 / total;
  }
  return sum;
}

/// Turns the probabilities p [n, v] into the gradient of the mean loss: (p - onehot) / n.
template <class T>
void cross_entropy_backward(T* p, const std::int32_t* targets, Index n, Index v) {
  for (Index i = 0; i < n; ++i) p[i * v + targets[i]] -= 1;
  array(p, n * v) *= 1 / static_cast<T>(n);
}

}  // namespace pipewright::transformer
