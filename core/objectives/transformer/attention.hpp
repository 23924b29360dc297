// Causal multi-head attention: per sequence and head softmax(q k^T / sqrt(d/heads)) v, where a
// token sees itself and those before it (Vaswani et al., "Attention is all you need", arXiv
// 1706.03762, equation 1).
#pragma once

#include <cmath>

#include "core/objectives/transformer/matrix.hpp"

namespace pipewright::transformer {

/// n sequences of t tokens, each of width d = heads * (d / heads).
struct AttentionShape {
  Index n, t, d, heads;

  Index width() const { return d / heads; }
  Index probabilities() const { return n * heads * t * t; }
};

/// Calls f(first row, first column, number) for every sequence and head.
template <class Function>
void for_each_head(const AttentionShape& shape, Function f) {
  for (Index s = 0; s < shape.n; ++s) {
    for (Index h = 0; h < shape.heads; ++h) {
      f(s * shape.t, h * shape.width(), s * shape.heads + h);
    }
  }
}

/// Row i of p [t, t] becomes the softmax of its first i + 1 entries, and zeros.
template <class T>
void causal_softmax(T* p, Index t) {
  for (Index i = 0; i < t; ++i) {
    auto seen = array(p + i * t, i + 1);
    seen -= seen.maxCoeff();
    array(p + i * t + i + 1, t - i - 1).setZero();
  }
  // All at once: exp of short rows would mostly work on single numbers.
  array(p, t * t) = array(p, t * t).exp();
  for (Index i = 0; i < t; ++i) {
    array(p + i * t + i + 1, t - i - 1).setZero();
    auto row = array(p + i * t, t);
    row *= 1 / row.sum();
  }
}

/// y [n t, d] of qkv [n t, 3 d], whose rows are q, k, v; keeps the softmax in p [n, heads, t, t].
template <class T>
void attention_forward(const T* qkv, T* p, T* y, const AttentionShape& shape) {
  const Index t = shape.t, d = shape.d, width = shape.width();
  const T scale = 1 / std::sqrt(static_cast<T>(width));
  for_each_head(shape, [&](Index row, Index column, Index number) {
    const T* first = qkv + row * 3 * d + column;
    const auto q = matrix(first, t, width, 3 * d);
    const auto k = matrix(first + d, t, width, 3 * d);
    const auto v = matrix(first + 2 * d, t, width, 3 * d);
    auto attention = matrix(p + number * t * t, t, t);
    attention.noalias() = (scale * q) * k.transpose();
    causal_softmax(attention.data(), t);
    matrix(y + row * d + column, t, width, d).noalias() = attention * v;
  });
}

/// dqkv [n t, 3 d] (overwritten) from dy [n t, d]; `dp` has room for [t, t]. With s the scaled
/// products before the softmax: ds = p * (dp - sum over the row of p * dp).
template <class T>
void attention_backward(const T* qkv, const T* p, const T* dy, T* dqkv, T* dp,
                        const AttentionShape& shape) {
  const Index t = shape.t, d = shape.d, width = shape.width();
  const T scale = 1 / std::sqrt(static_cast<T>(width));
  for_each_head(shape, [&](Index row, Index column, Index number) {
    const Index at = row * 3 * d + column;
    const auto q = matrix(qkv + at, t, width, 3 * d);
    const auto k = matrix(qkv + at + d, t, width, 3 * d);
    const auto v = matrix(qkv + at + 2 * d, t, width, 3 * d);
    const auto out = matrix(dy + row * d + column, t, width, d);
    const auto attention = matrix(p + number * t * t, t, t);
    matrix(dqkv + at + 2 * d, t, width, 3 * d).noalias() = attention.transpose() * out;
    auto ds = matrix(dp, t, t);
    ds.noalias() = out * v.transpose();
    for (Index i = 0; i < t; ++i) {
      const auto row_p = array(attention.data() + i * t, t);
      auto row_ds = array(dp + i * t, t);
      const T sum = (row_p * row_ds).sum();
      row_ds = (row_ds - sum) * row_p;
    }
    matrix(dqkv + at, t, width, 3 * d).noalias() = (scale * ds) * k;
    matrix(dqkv + at + d, t, width, 3 * d).noalias() = (scale * ds.transpose()) * q;
  });
}

}  // namespace pipewright::transformer
