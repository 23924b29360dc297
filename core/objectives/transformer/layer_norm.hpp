// y = (x - mean) / sqrt(variance + 1e-5) * w + b over each row, as torch.nn.LayerNorm (variance
// divides by the row's length).
#pragma once

#include <cmath>

#include "core/objectives/transformer/matrix.hpp"

namespace pipewright::transformer {

constexpr double layer_norm_epsilon = 1e-5;

/// y [n, d] of x [n, d], w [d], b [d]; keeps each row's mean and 1/sqrt(variance + epsilon) in
/// `stats` [n, 2].
template <class T>
void layer_norm_forward(const T* x, const T* w, const T* b, T* y, T* stats, Index n, Index d) {
  const auto weight = array(w, d);
  const auto bias = array(b, d);
  for (Index i = 0; i < n; ++i) {
    const auto row = array(x + i * d, d);
    const T mean = row.sum() / static_cast<T>(d);
    const T variance = (row - mean).square().sum() / static_cast<T>(d);
    const T scale = 1 / std::sqrt(variance + static_cast<T>(layer_norm_epsilon));
    array(y + i * d, d) = (row - mean) * scale * weight + bias;
    stats[2 * i] = mean;
    stats[2 * i + 1] = scale;
  }
}

/// dx [n, d] += the gradient that comes through the norm: a residual runs past every one. dw and
/// db [d] are overwritten, or left alone when dw is null. With h = (x - mean) * scale and g = dy *
/// w:
///   dx = scale * (g - mean(g) - h * mean(g * h))
template <class T>
void layer_norm_backward(const T* x, const T* w, const T* stats, const T* dy, T* dx, T* dw, T* db,
                         Index n, Index d) {
  const auto weight = array(w, d);
  if (dw != nullptr) array(dw, d).setZero();
  for (Index i = 0; i < n; ++i) {
    const auto row = array(x + i * d, d);
    const auto drow = array(dy + i * d, d);
    const T mean = stats[2 * i];
    const T scale = stats[2 * i + 1];
    const T mean_g = (drow * weight).sum() / static_cast<T>(d);
    const T mean_gh = (drow * weight * (row - mean)).sum() * scale / static_cast<T>(d);
    array(dx + i * d, d) += scale * (drow * weight - mean_g - (row - mean) * (scale * mean_gh));
    if (dw != nullptr) array(dw, d) += drow * (row - mean) * scale;
  }
  if (dw != nullptr) {
    array(db, d).setZero();
    for (Index i = 0; i < n; ++i) array(db, d) += array(dy + i * d, d);
  }
}

}  // namespace pipewright::transformer
