// Smoothness and optimum of linear models, X [examples, parameters] and one target each. Everything
// is deterministic and exact to rounding; what would take too long, or does not exist, is
// "unknown": nothing is given.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/data/libsvm.hpp"

namespace pipewright::theory {

/// X, dense row-major or (when `sparse` is not null) sparse. Refers to storage of the caller.
struct RowMatrix {
  std::int64_t examples = 0;
  std::int64_t parameters = 0;
  const double* dense = nullptr;
  const SparseRows* sparse = nullptr;
};

/// Above this many of min(examples, parameters) no eigenvalue and no optimum is computed (the work
/// grows with the third power), nor above this many multiplications for a factorization.
inline constexpr std::int64_t order_max = 2500;
inline constexpr double multiplications_max = 5e10;  // some seconds

/// Largest eigenvalue of X^T X (of X X^T, which has the same, when that is smaller), by
/// Householder's tridiagonalization and QR.
std::optional<double> largest_gram_eigenvalue(const RowMatrix& x);

/// min over w of ||X w - y||^2 / (2 n) by a complete orthogonal decomposition, which reveals the
/// rank: X may have dependent columns, or more columns than rows.
std::optional<double> least_squares_minimum(const RowMatrix& x, std::span<const double> y);

/// min over w of mean(log(1 + e^z) - y z) + l2/2 ||w||^2, z = X w, y of 0 or 1, by Newton's method
/// with backtracking, until Newton's decrement promises 1e-12 of the value. Nothing when there is
/// no minimum (classes that can be separated, l2 = 0) or Newton does not get there in 100 steps.
std::optional<double> logistic_minimum(const RowMatrix& x, std::span<const double> y, double l2);

}  // namespace pipewright::theory
