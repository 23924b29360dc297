// A token and its place in the sequence as a vector each, added.
#pragma once

#include <cstdint>

#include "core/objectives/transformer/matrix.hpp"

namespace pipewright::transformer {

/// y [n, t, d]: row of tokens[i] of `token_weights` [vocabulary, d] plus row (i mod t) of
/// `position_weights` [at least t, d], for n t tokens.
template <class T>
void embedding_forward(const std::int32_t* tokens, const T* token_weights,
                       const T* position_weights, T* y, Index n, Index t, Index d) {
  for (Index i = 0; i < n * t; ++i) {
    array(y + i * d, d) =
        array(token_weights + tokens[i] * d, d) + array(position_weights + i % t * d, d);
  }
}

/// dtoken [vocabulary, d] and dposition [t, d] (overwritten) from dy [n, t, d], added in the order
/// of the tokens.
template <class T>
void embedding_backward(const std::int32_t* tokens, const T* dy, T* dtoken, T* dposition, Index n,
                        Index t, Index d, Index vocabulary) {
  array(dtoken, vocabulary * d).setZero();
  array(dposition, t * d).setZero();
  for (Index i = 0; i < n * t; ++i) {
    array(dtoken + tokens[i] * d, d) += array(dy + i * d, d);
    array(dposition + i % t * d, d) += array(dy + i * d, d);
  }
}

}  // namespace pipewright::transformer
