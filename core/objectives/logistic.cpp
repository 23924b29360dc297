// logistic: f(w) = mean(log(1 + e^z) - y z) + l2/2 ||w||^2 with z = X w and labels y of 0 or 1.
#include <algorithm>
#include <cmath>

#include "core/data/labels.hpp"
#include "core/objectives/linear/linear_objective.hpp"

namespace pipewright {

namespace {

/// log(1 + e^z) - y z, where e = e^-|z| is at most 1: nothing overflows and nothing cancels.
double loss_of(double z, double y, double e) {
  return std::max(z, 0.0) + std::log1p(e) - y * z;
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
    const double probability = z[i] < 0 ? e / (1 + e) : 1 / (1 + e);
    z[i] = scale * (probability - y[i]);
  }
  return total;
}

std::unique_ptr<Objective> load(const Value& parameters, const ObjectiveContext& context) {
  linear::Data data = linear::load_data(parameters.at("data"), context.files);
  map_to_two_classes(data.targets, data.where_target);
  return linear::make_objective(std::move(data), {sum, sum_and_gradient},
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
