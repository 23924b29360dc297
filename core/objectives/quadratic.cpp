// quadratic: f(w) = ||X w - y||^2 / (2 n); a batch of b rows: ||X_b w - y_b||^2 / (2 b).
#include "core/base/error.hpp"
#include "core/data/generate.hpp"
#include "core/objectives/linear/linear_objective.hpp"

namespace pipewright {

namespace {

double sum(const double* z, const double* y, Index count) {
  double squares = 0;
  for (Index i = 0; i < count; ++i) squares += (z[i] - y[i]) * (z[i] - y[i]);
  return squares / 2;
}

double sum_and_gradient(double* z, const double* y, Index count, double scale) {
  const double total = sum(z, y, count);
  for (Index i = 0; i < count; ++i) z[i] = scale * (z[i] - y[i]);
  return total;
}

/// L is the largest eigenvalue of the Hessian X^T X / n.
ObjectiveTheory theory_of(const linear::Data& data, double /*l2*/) {
  const theory::RowMatrix x = linear::matrix_of(data);
  ObjectiveTheory known;
  if (const auto largest = theory::largest_gram_eigenvalue(x)) {
    known.smoothness = *largest / static_cast<double>(data.examples);
  }
  known.optimum = theory::least_squares_minimum(x, data.targets);
  return known;
}

ParamSpec generate_parameter() {
  return ParamSpec::group_of(
      "generate", "a problem made from a seed, instead of data",
      {ParamSpec::text_of("kind",
                          "random: standard normal X; tridiagonal: Nesterov's Hessian + 0.01 I; "
                          "conditioned: given condition number",
                          {"random", "tridiagonal", "conditioned"})
           .needed(),
       ParamSpec::integer_of("examples", "rows of X").at_least(1).needed(),
       ParamSpec::integer_of("parameters", "columns of X").at_least(1).needed(),
       ParamSpec::integer_of("seed", "of the generator, apart from the run's seed")
           .at_least(0)
           .or_default(0),
       ParamSpec::real_of("condition_number", "of the Hessian; only for conditioned").at_least(1),
       ParamSpec::real_of("noise", "standard deviation of the noise added to y")
           .at_least(0)
           .or_default(0.0)});
}

linear::Data generate(const Value& parameters) {
  const std::string& kind = parameters.at("kind").as_text();
  const Value* condition_number = parameters.find("condition_number");
  if ((kind == "conditioned") != (condition_number != nullptr)) {
    throw ParamError("generate",
                     kind == "conditioned"
                         ? "kind conditioned needs a condition_number"
                         : "condition_number is only for kind conditioned, found " + kind);
  }
  ProblemOptions options;
  options.kind = kind == "random"        ? ProblemKind::random
                 : kind == "tridiagonal" ? ProblemKind::tridiagonal
                                         : ProblemKind::conditioned;
  options.examples = parameters.at("examples").as_integer();
  options.parameters = parameters.at("parameters").as_integer();
  options.seed = static_cast<std::uint64_t>(parameters.at("seed").as_integer());
  if (condition_number != nullptr) options.condition_number = condition_number->as_real();
  options.noise = parameters.at("noise").as_real();
  Problem problem;
  try {
    problem = generate_problem(options);
  } catch (const ConfigError& error) {
    throw ParamError("generate", error.what());
  }
  linear::Data data;
  data.examples = options.examples;
  data.parameters = options.parameters;
  data.dense = std::move(problem.x);
  data.targets = std::move(problem.y);
  return data;
}

std::unique_ptr<Objective> load(const Value& parameters, const ObjectiveContext& context) {
  const Value* data = parameters.find("data");
  const Value* generated = parameters.find("generate");
  if ((data == nullptr) == (generated == nullptr)) {
    throw ParamError("", std::string("give exactly one of data and generate, found ") +
                             (data == nullptr ? "neither" : "both"));
  }
  return linear::make_objective(
      data != nullptr ? linear::load_data(*data, context.files) : generate(*generated),
      {sum, sum_and_gradient, theory_of}, 0, parameters.at("batch_size").as_integer(),
      context.stages);
}

const Registration<ObjectiveKind> registration{
    {.kind = "quadratic",
     .summary = "Least squares: ||Xw - y||^2 / (2n)",
     .parameters = {linear::data_parameter(), generate_parameter(), linear::batch_size_parameter()},
     .default_init = DefaultInit::zeros,
     .load = load}};

}  // namespace

}  // namespace pipewright
