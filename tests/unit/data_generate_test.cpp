#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

// g++ 12 with AVX-512 and sanitizers warns of its own _mm512_undefined_pd() (GCC bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <Eigen/Eigenvalues>
#pragma GCC diagnostic pop

#include "core/base/error.hpp"
#include "core/data/generate.hpp"

namespace pipewright {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Matrix matrix_of(const ProblemOptions& options, const Problem& problem) {
  return Eigen::Map<const Matrix>(problem.x.data(), options.examples, options.parameters);
}
Matrix hessian_of(const ProblemOptions& options) {
  const Matrix x = matrix_of(options, generate_problem(options));
  return x.transpose() * x / static_cast<double>(options.examples);
}

TEST(Generate, TridiagonalHasNesterovsHessian) {
  for (const auto& [n, d] : {std::pair{60, 22}, {22, 22}, {7, 1}, {600, 512}}) {
    const Matrix hessian =
        hessian_of({.kind = ProblemKind::tridiagonal, .examples = n, .parameters = d, .seed = 9});
    Matrix expected = Matrix::Zero(d, d);
    expected.diagonal().setConstant(2.01);
    if (d > 1) {
      expected.diagonal(1).setConstant(-1);
      expected.diagonal(-1).setConstant(-1);
    }
    EXPECT_LT((hessian - expected).cwiseAbs().maxCoeff(), 1e-12) << n << " x " << d;
  }
}

TEST(Generate, ConditionedReachesItsConditionNumberInLogarithmicSteps) {
  for (const double condition_number : {1.0, 100.0, 1e6}) {
    const Matrix hessian = hessian_of({.kind = ProblemKind::conditioned,
                                       .examples = 40,
                                       .parameters = 21,
                                       .seed = 2,
                                       .condition_number = condition_number});
    const Eigen::VectorXd eigenvalues =
        Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(hessian).eigenvalues();
    for (int j = 0; j < 21; ++j) {
      EXPECT_NEAR(eigenvalues[j], std::pow(condition_number, j / 20.0 - 1), 1e-13);
    }
  }
}

TEST(Generate, RandomHasStandardNormalEntries) {
  const Problem problem = generate_problem({.examples = 300, .parameters = 100, .seed = 1});
  const Eigen::Map<const Eigen::ArrayXd> x(problem.x.data(), 30000);
  EXPECT_NEAR(x.mean(), 0, 4 / std::sqrt(30000.0));
  EXPECT_NEAR(x.square().mean(), 1, 4 * std::sqrt(2 / 30000.0));
}

TEST(Generate, WithoutNoiseTheSolutionFitsExactly) {
  for (const ProblemKind kind :
       {ProblemKind::random, ProblemKind::tridiagonal, ProblemKind::conditioned}) {
    const ProblemOptions options{.kind = kind,
                                 .examples = 50,
                                 .parameters = 20,
                                 .condition_number = kind == ProblemKind::conditioned ? 10.0 : 1.0};
    const Problem problem = generate_problem(options);
    const Eigen::VectorXd residual =
        matrix_of(options, problem) *
            Eigen::Map<const Eigen::VectorXd>(problem.solution.data(), 20) -
        Eigen::Map<const Eigen::VectorXd>(problem.y.data(), 50);
    EXPECT_LT(residual.cwiseAbs().maxCoeff(), 1e-12);
  }
}

TEST(Generate, NoiseIsAddedToTheTargetsAlone) {
  ProblemOptions options{.examples = 2000, .parameters = 3};
  const Problem clean = generate_problem(options);
  options.noise = 0.5;
  const Problem noisy = generate_problem(options);
  EXPECT_EQ(clean.x, noisy.x);
  double squares = 0;
  for (std::size_t i = 0; i < 2000; ++i) squares += std::pow(noisy.y[i] - clean.y[i], 2);
  EXPECT_NEAR(squares / 2000, 0.25, 0.04);
}

TEST(Generate, DependsOnTheSeedAndOnNothingElse) {
  for (const ProblemKind kind : {ProblemKind::random, ProblemKind::tridiagonal}) {
    const ProblemOptions options{.kind = kind, .examples = 30, .parameters = 8, .seed = 4};
    ProblemOptions other = options;
    other.seed = 5;
    EXPECT_EQ(generate_problem(options).x, generate_problem(options).x);
    EXPECT_EQ(generate_problem(options).y, generate_problem(options).y);
    EXPECT_NE(generate_problem(options).x, generate_problem(other).x);
    EXPECT_NE(generate_problem(options).y, generate_problem(other).y);
  }
}

TEST(Generate, ARowDoesNotDependOnHowManyThereAre) {
  const Problem few = generate_problem({.examples = 10, .parameters = 8, .seed = 4, .noise = 0.1});
  Problem many = generate_problem({.examples = 100, .parameters = 8, .seed = 4, .noise = 0.1});
  many.x.resize(few.x.size());
  EXPECT_EQ(few.x, many.x);
  EXPECT_EQ(few.solution, many.solution);
}

std::string error_of(const ProblemOptions& options) {
  try {
    generate_problem(options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Generate, RefusesWhatCannotBe) {
  using testing::HasSubstr;
  EXPECT_THAT(error_of({.examples = 0, .parameters = 5}),
              HasSubstr("0 examples of 5 parameters: both must be at least 1"));
  EXPECT_THAT(error_of({.kind = ProblemKind::tridiagonal, .examples = 4, .parameters = 5}),
              HasSubstr("at least as many examples as parameters, found 4 examples and 5"));
  EXPECT_THAT(error_of({.examples = std::int64_t{1} << 40, .parameters = std::int64_t{1} << 40}),
              HasSubstr("more than 2^30 numbers"));
  EXPECT_THAT(error_of({.kind = ProblemKind::conditioned,
                        .examples = 4,
                        .parameters = 1,
                        .condition_number = 2}),
              HasSubstr("one parameter has condition number 1"));
  EXPECT_THAT(error_of({.kind = ProblemKind::conditioned,
                        .examples = 4,
                        .parameters = 2,
                        .condition_number = 0.5}),
              HasSubstr("at least 1"));
}

}  // namespace
}  // namespace pipewright
