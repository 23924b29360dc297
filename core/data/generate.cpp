#include "core/data/generate.hpp"

#include <cmath>
#include <string>

// g++ 12 with AVX-512 and sanitizers warns of its own _mm512_undefined_pd() (GCC bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <Eigen/QR>
#pragma GCC diagnostic pop

#include "core/base/error.hpp"
#include "core/base/random.hpp"

namespace pipewright {

namespace {

using Eigen::Index;
using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Which matrix of random entries a stream belongs to. Curves depend on these numbers.
enum : std::uint32_t { examples_matrix = 0, rotation_matrix = 1 };

constexpr double ridge = 0.01;

void check(const ProblemOptions& options) {
  const std::string n = std::to_string(options.examples);
  const std::string d = std::to_string(options.parameters);
  if (options.examples < 1 || options.parameters < 1) {
    throw ConfigError(n + " examples of " + d + " parameters: both must be at least 1");
  }
  static constexpr std::int64_t numbers_max = std::int64_t{1} << 30;
  if (options.examples > numbers_max / options.parameters) {
    throw ConfigError(n + " examples of " + d + " parameters are more than 2^30 numbers");
  }
  if (options.kind == ProblemKind::random) return;
  if (options.examples < options.parameters) {
    throw ConfigError(
        "tridiagonal and conditioned need at least as many examples as parameters, found " + n +
        " examples and " + d + " parameters");
  }
  if (options.kind != ProblemKind::conditioned) return;
  if (!(options.condition_number >= 1) || !std::isfinite(options.condition_number)) {
    throw ConfigError("a condition number must be finite and at least 1");
  }
  if (options.parameters == 1 && options.condition_number != 1) {
    throw ConfigError("a problem of one parameter has condition number 1");
  }
}

RowMajor gaussian(std::uint64_t seed, std::uint32_t matrix, Index rows, Index columns) {
  RowMajor out(rows, columns);
  for (Index i = 0; i < rows; ++i) {
    RandomStream draws(seed, DrawKind::generated_data, matrix, static_cast<std::uint64_t>(i));
    for (Index j = 0; j < columns; ++j) out(i, j) = draws.normal();
  }
  return out;
}

/// Orthonormal columns, uniformly distributed: QR with the signs that make R's diagonal positive.
Eigen::MatrixXd orthonormal(std::uint64_t seed, std::uint32_t matrix, Index rows, Index columns) {
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(gaussian(seed, matrix, rows, columns));
  Eigen::MatrixXd q = Eigen::MatrixXd::Identity(rows, columns);
  q.applyOnTheLeft(qr.householderQ());
  for (Index j = 0; j < columns; ++j) {
    if (qr.matrixQR()(j, j) < 0) q.col(j) = -q.col(j);
  }
  return q;
}

RowMajor tridiagonal(const ProblemOptions& options) {
  const Index n = options.examples;
  const Index d = options.parameters;
  const Eigen::MatrixXd q = orthonormal(options.seed, examples_matrix, n, d);
  RowMajor x(n, d);
  double diagonal = std::sqrt(2 + ridge);  // R(j, j)
  x.col(0) = diagonal * q.col(0);
  for (Index j = 1; j < d; ++j) {
    const double above = -1 / diagonal;  // R(j - 1, j)
    diagonal = std::sqrt(2 + ridge - above * above);
    x.col(j) = above * q.col(j - 1) + diagonal * q.col(j);
  }
  x *= std::sqrt(static_cast<double>(n));
  return x;
}

RowMajor conditioned(const ProblemOptions& options) {
  const Index n = options.examples;
  const Index d = options.parameters;
  Eigen::MatrixXd q = orthonormal(options.seed, examples_matrix, n, d);
  const Eigen::MatrixXd v = orthonormal(options.seed, rotation_matrix, d, d);
  for (Index j = 0; j < d; ++j) {
    const double step = d > 1 ? static_cast<double>(j) / static_cast<double>(d - 1) : 0;
    const double eigenvalue = std::pow(options.condition_number, -step);
    q.col(j) *= std::sqrt(static_cast<double>(n) * eigenvalue);
  }
  return q * v.transpose();
}

RowMajor examples_of(const ProblemOptions& options) {
  switch (options.kind) {
    case ProblemKind::tridiagonal:
      return tridiagonal(options);
    case ProblemKind::conditioned:
      return conditioned(options);
    case ProblemKind::random:
      break;
  }
  return gaussian(options.seed, examples_matrix, options.examples, options.parameters);
}

}  // namespace

Problem generate_problem(const ProblemOptions& options) {
  check(options);
  const RowMajor x = examples_of(options);
  RandomStream draws(options.seed, DrawKind::generated_targets);
  Eigen::VectorXd solution(x.cols());
  for (double& entry : solution) entry = draws.normal();
  Eigen::VectorXd y = x * solution;
  for (Index i = 0; options.noise > 0 && i < y.size(); ++i) {
    y[i] += options.noise *
            RandomStream(options.seed, DrawKind::label_noise, 0, static_cast<std::uint64_t>(i))
                .normal();
  }
  return {.x = {x.data(), x.data() + x.size()},
          .y = {y.begin(), y.end()},
          .solution = {solution.begin(), solution.end()}};
}

}  // namespace pipewright
