// y = x w^T + b, as torch.nn.Linear.
#pragma once

#include "core/objectives/transformer/matrix.hpp"

namespace pipewright::transformer {

/// y [n, out] = (or +=, with `add`) x [n, in] w^T + b, with w [out, in] and b [out] or null.
template <class T>
void linear_forward(const T* x, const T* w, const T* b, T* y, Index n, Index in, Index out,
                    bool add = false) {
  if (!add && b == nullptr) array(y, n * out).setZero();
  for (Index i = 0; i < n && b != nullptr; ++i) {
    auto row = array(y + i * out, out);
    if (add) {
      row += array(b, out);
    } else {
      row = array(b, out);
    }
  }
  matrix(y, n, out).noalias() += matrix(x, n, in) * matrix(w, out, in).transpose();
}

/// db [out] = the sum of the rows of dy [n, out], from the first to the last.
template <class T>
void sum_rows(const T* dy, T* db, Index n, Index out) {
  array(db, out).setZero();
  for (Index i = 0; i < n; ++i) array(db, out) += array(dy + i * out, out);
}

/// dw [out, in] = dy^T x, db [out] = sum of dy's rows (null: there is no bias).
template <class T>
void linear_backward_weights(const T* x, const T* dy, T* dw, T* db, Index n, Index in, Index out) {
  matrix(dw, out, in).noalias() = matrix(dy, n, out).transpose() * matrix(x, n, in);
  if (db != nullptr) sum_rows(dy, db, n, out);
}

/// dx [n, in] = dy [n, out] w.
template <class T>
void linear_backward_input(const T* w, const T* dy, T* dx, Index n, Index in, Index out) {
  matrix(dx, n, in).noalias() = matrix(dy, n, out) * matrix(w, out, in);
}

}  // namespace pipewright::transformer
