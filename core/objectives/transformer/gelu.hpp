// gelu(x) = x Phi(x), with the normal distribution Phi(x) = (1 + erf(x / sqrt 2)) / 2: the exact
// one (Hendrycks and Gimpel, "Gaussian error linear units", arXiv 1606.08415, equation 1), not the
// approximation by tanh.
#pragma once

#include <algorithm>
#include <numbers>
#include <unsupported/Eigen/SpecialFunctions>

#include "core/objectives/transformer/matrix.hpp"

namespace pipewright::transformer {

/// y [n] of x [n].
template <class T>
void gelu_forward(const T* x, T* y, Index n) {
  const T half = static_cast<T>(0.5);
  const T by_root_2 = 1 / std::numbers::sqrt2_v<T>;
  array(y, n) = array(x, n) * (half + half * (array(x, n) * by_root_2).erf());
}

/// dx [n] *= Phi(x) + x Phi'(x), and puts gelu(x) in the place of x, which its forward gave and
/// the layer behind wants once more: keeping it all along would cost as much memory as x.
template <class T>
void gelu_backward(T* x, T* dx, Index n) {
  const T half = static_cast<T>(0.5);
  const T by_root_2 = 1 / std::numbers::sqrt2_v<T>;
  const T by_root_2_pi = std::numbers::inv_sqrtpi_v<T> / std::numbers::sqrt2_v<T>;
  // In pieces that stay in the nearest cache; a piece is a multiple of every packet.
  static constexpr Index piece = 1024;
  alignas(64) T y[piece];
  for (Index at = 0; at < n; at += piece) {
    const Index count = std::min(piece, n - at);
    auto in = array(x + at, count);
    auto phi = array(y, count);
    phi = half + half * (in * by_root_2).erf();
    array(dx + at, count) *= phi + in * by_root_2_pi * (-half * in.square()).exp();
    in *= phi;
  }
}

}  // namespace pipewright::transformer
