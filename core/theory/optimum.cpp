#include "core/theory/optimum.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <algorithm>
#include <cmath>

namespace pipewright::theory {

namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;
using Rows =
    Eigen::Map<const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;

Rows dense_of(const RowMatrix& x) {
  return {x.dense, x.examples, x.parameters};
}

/// Calls visit(column, value) for every entry of a sparse row.
template <class Visit>
void for_row(const SparseRows& rows, std::int64_t row, Visit&& visit) {
  for (std::int64_t e = rows.row_starts[static_cast<std::size_t>(row)];
       e < rows.row_starts[static_cast<std::size_t>(row) + 1]; ++e) {
    const auto at = static_cast<std::size_t>(e);
    visit(static_cast<Eigen::Index>(rows.columns[at]), rows.values[at]);
  }
}

Matrix to_dense(const RowMatrix& x) {
  if (x.sparse == nullptr) return dense_of(x);
  Matrix all = Matrix::Zero(x.examples, x.parameters);
  for (std::int64_t i = 0; i < x.examples; ++i) {
    for_row(*x.sparse, i, [&](Eigen::Index column, double value) { all(i, column) = value; });
  }
  return all;
}

Vector multiply(const RowMatrix& x, const Vector& w) {
  if (x.sparse == nullptr) return dense_of(x) * w;
  Vector z = Vector::Zero(x.examples);
  for (std::int64_t i = 0; i < x.examples; ++i) {
    for_row(*x.sparse, i, [&](Eigen::Index column, double value) { z[i] += value * w[column]; });
  }
  return z;
}

Vector multiply_transposed(const RowMatrix& x, const Vector& r) {
  if (x.sparse == nullptr) return dense_of(x).transpose() * r;
  Vector g = Vector::Zero(x.parameters);
  for (std::int64_t i = 0; i < x.examples; ++i) {
    for_row(*x.sparse, i, [&](Eigen::Index column, double value) { g[column] += value * r[i]; });
  }
  return g;
}

/// X^T diag(weights) X, the lower triangle.
Matrix weighted_gram(const RowMatrix& x, const Vector& weights) {
  Matrix gram = Matrix::Zero(x.parameters, x.parameters);
  if (x.sparse == nullptr) {
    // A product of a matrix with itself, so the weights go in by their roots.
    const Matrix scaled = weights.cwiseSqrt().asDiagonal() * dense_of(x);
    gram.selfadjointView<Eigen::Lower>().rankUpdate(scaled.transpose());
    return gram;
  }
  for (std::int64_t i = 0; i < x.examples; ++i) {
    for_row(*x.sparse, i, [&](Eigen::Index row, double a) {
      for_row(*x.sparse, i, [&](Eigen::Index column, double b) {
        if (column <= row) gram(row, column) += weights[i] * a * b;
      });
    });
  }
  return gram;
}

bool is_too_large(const RowMatrix& x, double multiplications) {
  return std::min(x.examples, x.parameters) > order_max || multiplications > multiplications_max;
}

double squared(std::int64_t number) {
  return static_cast<double>(number) * static_cast<double>(number);
}

struct Logistic {
  double value = 0;
  Vector residual;   // sigma(z) - y
  Vector curvature;  // sigma(z) (1 - sigma(z))
};

Logistic logistic_at(const Vector& z, std::span<const double> y, double penalty) {
  Logistic at{0, Vector(z.size()), Vector(z.size())};
  double sum = 0;
  for (Eigen::Index i = 0; i < z.size(); ++i) {
    const double e = std::exp(-std::abs(z[i]));  // at most 1: nothing overflows
    const double target = y[static_cast<std::size_t>(i)];
    sum += (std::max(z[i], 0.0) - target * z[i]) + std::log1p(e);
    const bool is_one = target > 0.5;
    const double of_other = (z[i] < 0) == is_one ? 1 / (1 + e) : e / (1 + e);
    at.residual[i] = is_one ? -of_other : of_other;
    at.curvature[i] = e / ((1 + e) * (1 + e));
  }
  at.value = sum / static_cast<double>(z.size()) + penalty;
  return at;
}

/// Newton's method on the logistic loss.
class Newton {
 public:
  Newton(const RowMatrix& x, std::span<const double> y, double l2)
      : x_(x),
        y_(y),
        l2_(l2),
        n_(static_cast<double>(x.examples)),
        w_(Vector::Zero(x.parameters)) {}

  std::optional<double> minimum() {
    static constexpr int steps_max = 100;
    at_ = value_at(w_);
    double decrement_before = INFINITY;
    for (int step = 0; step < steps_max; ++step) {
      const Vector gradient = multiply_transposed(x_, at_.residual) / n_ + l2_ * w_;
      const Vector direction = solve(gradient);
      const double decrement = gradient.dot(direction) / 2;  // about f - f*
      if (!std::isfinite(decrement)) return std::nullopt;
      if (decrement <= 1e-12 * at_.value) {
        // Near a minimum the decrement falls quadratically; where some classes can be separated and
        // nothing holds the weights back, by a factor of e per step for ever.
        const bool is_quadratic = decrement <= 0.01 * decrement_before || decrement <= 0;
        if (is_quadratic) return take_last_step(direction);
        return std::nullopt;
      }
      if (!go(direction, decrement)) return std::nullopt;
      decrement_before = decrement;
    }
    return std::nullopt;
  }

 private:
  Logistic value_at(const Vector& w) const {
    return logistic_at(multiply(x_, w), y_, l2_ / 2 * w.squaredNorm());
  }

  /// The gradient lies in the range of the Hessian, so directions in which X is dependent need no
  /// more than a ridge at the level of rounding.
  Vector solve(const Vector& gradient) const {
    Matrix hessian = weighted_gram(x_, at_.curvature) / n_;
    const double ridge = 1e-14 * hessian.diagonal().maxCoeff();
    hessian.diagonal().array() += l2_ + ridge;
    return hessian.selfadjointView<Eigen::Lower>().ldlt().solve(gradient);
  }

  bool go(const Vector& direction, double decrement) {
    for (double share = 1; share > 1e-10; share /= 2) {
      const Vector next = w_ - share * direction;
      Logistic there = value_at(next);
      // Armijo's condition: a quarter of what the slope (2 decrement) promises. Close to the
      // minimum rounding may hide the progress.
      const double rounding = 4e-16 * at_.value;
      if (there.value <= at_.value - share * decrement / 2 + rounding) {
        w_ = next;
        at_ = std::move(there);
        return true;
      }
    }
    return false;
  }

  double take_last_step(const Vector& direction) const {
    return std::min(at_.value, value_at(w_ - direction).value);
  }

  const RowMatrix& x_;
  std::span<const double> y_;
  double l2_;
  double n_;
  Vector w_;
  Logistic at_;
};

}  // namespace

std::optional<double> largest_gram_eigenvalue(const RowMatrix& x) {
  const std::int64_t order = std::min(x.examples, x.parameters);
  const bool is_wide = x.parameters > x.examples;
  const double entries = x.sparse != nullptr && !is_wide
                             ? static_cast<double>(x.sparse->values.size())
                             : static_cast<double>(x.examples) * static_cast<double>(x.parameters);
  if (is_too_large(x, entries * static_cast<double>(order))) return std::nullopt;
  Matrix gram;
  if (is_wide) {
    const Matrix all = to_dense(x);
    gram = Matrix::Zero(x.examples, x.examples);
    gram.selfadjointView<Eigen::Lower>().rankUpdate(all);
  } else {
    gram = weighted_gram(x, Vector::Ones(x.examples));
  }
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(gram, Eigen::EigenvaluesOnly);
  if (solver.info() != Eigen::Success) return std::nullopt;
  return solver.eigenvalues().maxCoeff();
}

std::optional<double> least_squares_minimum(const RowMatrix& x, std::span<const double> y) {
  const double multiplications = 2 * static_cast<double>(std::max(x.examples, x.parameters)) *
                                 squared(std::min(x.examples, x.parameters));
  if (is_too_large(x, multiplications)) return std::nullopt;
  const Matrix all = to_dense(x);
  const Eigen::Map<const Vector> target(y.data(), x.examples);
  const Eigen::CompleteOrthogonalDecomposition<Matrix> decomposition(all);
  const Vector w = decomposition.solve(target);
  return (all * w - target).squaredNorm() / (2 * static_cast<double>(x.examples));
}

std::optional<double> logistic_minimum(const RowMatrix& x, std::span<const double> y, double l2) {
  // A Hessian takes n d^2 and its factors d^3 / 3, for about ten steps.
  const double per_row = x.sparse != nullptr ? static_cast<double>(x.sparse->values.size()) /
                                                   static_cast<double>(x.examples)
                                             : static_cast<double>(x.parameters);
  const double multiplications =
      10 * (static_cast<double>(x.examples) * per_row * per_row +
            squared(x.parameters) * static_cast<double>(x.parameters) / 3);
  if (x.parameters > order_max || multiplications > multiplications_max) return std::nullopt;
  return Newton(x, y, l2).minimum();
}

}  // namespace pipewright::theory
