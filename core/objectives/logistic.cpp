// logistic: f(w) = mean(log(1 + e^z) - y z) + l2/2 ||w||^2 with z = X w and labels y of 0 or 1.
#include <algorithm>
#include <cmath>

#include "core/data/labels.hpp"
#include "core/objectives/linear/linear_objective.hpp"

namespace pipewright {

namespace {

/// log(1 + e^z) - y z, where e = e^-|z| is at most 1 so that nothing overflows. In this order
/// nothing cancels either: for y of 0 or 1 the bracket is exact, and 0 where the loss is small.
double loss_of(double z, double y, double e) {
  return (std::max(z, 0.0) - y * z) + std::log1p(e);
}

/// sigma(z) - y: plus or minus the probability of the class that y is not, which never cancels.
double gradient_of(double z, double y, double e) {
  const bool is_one = y > 0.5;
  const double of_other_class = (z < 0) == is_one ? 1 / (1 + e) : e / (1 + e);
  return is_one ? -of_other_class : of_other_class;
}

double sum(const double* z, const double* y, Index count) {
  double total = 0;
  for (Index i = 0; i < count; ++i) total += loss_of(z[i], y[i], std::exp(-std::abs(z[i])));
  return total;
}

double sum_and_gradient(double* z, const double* y, Index count, double scale) {
  double total = 0;
  for (Index i = 0; i < count; ++i) {
    const double e = std::exp(-std::abs(z[i]));
    total += loss_of(z[i], y[i], e);
    z[i] = scale * gradient_of(z[i], y[i], e);
  }
  return total;
}

/// The Hessian is X^T D X / n + l2 I with D at most 1/4.
ObjectiveTheory theory_of(const linear::Data& data, double l2) {
  const theory::RowMatrix x = linear::matrix_of(data);
  ObjectiveTheory known;
  if (const auto largest = theory::largest_gram_eigenvalue(x)) {
    known.smoothness = *largest / (4 * static_cast<double>(data.examples)) + l2;
  }
  known.optimum = theory::logistic_minimum(x, data.targets, l2);
  return known;
}

std::unique_ptr<Objective> load(const Value& parameters, const ObjectiveContext& context) {
  linear::Data data = linear::load_data(parameters.at("data"), context.files);
  map_to_two_classes(data.targets, data.where_target);
  return linear::make_objective(std::move(data), {sum, sum_and_gradient, theory_of},
                                parameters.at("l2").as_real(),
                                parameters.at("batch_size").as_integer(), context.stages);
}

const Registration<ObjectiveKind> registration{
    {.kind = "logistic",
     .summary = "Logistic regression of two classes: mean(log(1+e^z) - y z) + l2/2 ||w||^2, z = Xw",
     .parameters = {linear::data_parameter().needed(),
                    ParamSpec::real_of("l2", "weight of ||w||^2 / 2, in every block's gradient")
                        .at_least(0)
                        .or_default(0.0),
                    linear::batch_size_parameter()},
     .default_init = DefaultInit::zeros,
     .load = load}};

}  // namespace

}  // namespace pipewright
