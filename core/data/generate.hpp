// Problems made from a seed: f(w) = ||X w - y||^2 / (2 n), whose Hessian is X^T X / n. The solution
// w* has standard normal entries and y = X w* + noise * (standard normal), so without noise the
// optimum is 0.
//
//   random       X has standard normal entries.
//   tridiagonal  X = sqrt(n) Q R, so that X^T X / n = R^T R = T + 0.01 I exactly, with T Nesterov's
//                tridiagonal matrix (2 on the diagonal, -1 beside it), the hard case for
//                first-order methods. R is the bidiagonal Cholesky factor, Q an orthonormal n x d
//                matrix.
//   conditioned  X = sqrt(n) Q diag(sigma) V^T: the eigenvalues sigma_j^2 of X^T X / n go from 1
//   down to
//                1 / condition_number in d logarithmic steps; V is orthogonal.
//
// Q and V are uniformly distributed (QR of a matrix of standard normal entries). Every row of
// random entries has a stream of its own, so a row does not depend on how many there are.
#pragma once

#include <cstdint>
#include <vector>

namespace pipewright {

enum class ProblemKind : std::uint8_t { random, tridiagonal, conditioned };

struct ProblemOptions {
  ProblemKind kind = ProblemKind::random;
  std::int64_t examples = 0;    // n
  std::int64_t parameters = 0;  // d
  std::uint64_t seed = 0;
  double condition_number = 1;  // of X^T X / n; only for conditioned
  double noise = 0;             // standard deviation of what is added to y
};

struct Problem {
  std::vector<double> x;         // [n, d], row-major
  std::vector<double> y;         // [n]
  std::vector<double> solution;  // w*, [d]
};

/// Throws ConfigError when tridiagonal or conditioned is asked for with fewer examples than
/// parameters (X^T X would be singular), for one parameter with a condition number other than 1,
/// and above 2^30 numbers.
Problem generate_problem(const ProblemOptions& options);

}  // namespace pipewright
