// Compiled with -fno-math-errno: only then does a compiler take roots in vectors. They are exact
// there too, unlike Eigen's, which depend on the CPU.
#include <cmath>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/train/optimizers/kinds.hpp"

namespace pipewright {

namespace {

/// A step's coefficients, with the corrections of both means drawn out of the loop:
/// rate (m / c1) / (sqrt(v / c2) + epsilon) = (rate sqrt(c2) / c1) m / (sqrt(v) + epsilon
/// sqrt(c2)).
template <class T>
struct Coefficients {
  T beta1, beta1_rest;
  T beta2, beta2_rest;
  T keep;
  T step;
  T epsilon;
};

template <class T>
void step_elements(const Coefficients<T>& c, Index n, const T* from, T* to, const T* g, T* m,
                   T* v) {
  // `from` and `to` may be one tensor; element i depends on element i alone.
#pragma GCC ivdep
  for (Index i = 0; i < n; ++i) {
    const T mean = c.beta1 * m[i] + c.beta1_rest * g[i];
    const T square = c.beta2 * v[i] + c.beta2_rest * (g[i] * g[i]);
    m[i] = mean;
    v[i] = square;
    to[i] = c.keep * from[i] - c.step * mean / (std::sqrt(square) + c.epsilon);
  }
}

double beta_of(const Value& parameters, const char* name) {
  const double beta = parameters.at(name).as_real();
  if (beta >= 1) throw ParamError(name, "must be below 1, found " + format_number(beta));
  return beta;
}

class AdamW : public Optimizer {
 public:
  explicit AdamW(const Value& parameters)
      : Optimizer(parameters),
        beta1_(beta_of(parameters, "beta1")),
        beta2_(beta_of(parameters, "beta2")),
        epsilon_(parameters.at("epsilon").as_real()),
        weight_decay_(parameters.at("weight_decay").as_real()) {}

 private:
  void apply(const Tensor& from, Tensor& to, Tensor& gradient, double rate) override {
    if (mean_.empty()) {
      mean_ = Tensor::zeros(from.dtype(), from.shape());
      square_ = Tensor::zeros(from.dtype(), from.shape());
    }
    ++steps_;
    if (from.dtype() == DType::float32) {
      apply_as<float>(from, to, gradient, rate);
    } else {
      apply_as<double>(from, to, gradient, rate);
    }
  }

  void archive_own(Archive& archive) override {
    archive(steps_);
    archive(mean_);
    archive(square_);
  }

  template <class T>
  void apply_as(const Tensor& from, Tensor& to, const Tensor& gradient, double rate) {
    const auto steps = static_cast<double>(steps_);
    const double correction1 = 1 - std::pow(beta1_, steps);
    const double root_correction2 = std::sqrt(1 - std::pow(beta2_, steps));
    const Coefficients<T> c{static_cast<T>(beta1_),
                            static_cast<T>(1 - beta1_),
                            static_cast<T>(beta2_),
                            static_cast<T>(1 - beta2_),
                            static_cast<T>(1 - rate * weight_decay_),
                            static_cast<T>(rate * root_correction2 / correction1),
                            static_cast<T>(epsilon_ * root_correction2)};
    step_elements<T>(c, from.elements(), from.data<T>(), to.data<T>(), gradient.data<T>(),
                     mean_.data<T>(), square_.data<T>());
  }

  double beta1_;
  double beta2_;
  double epsilon_;
  double weight_decay_;
  std::int64_t steps_ = 0;
  Tensor mean_;    // m
  Tensor square_;  // v
};

}  // namespace

OptimizerKind adamw_kind() {
  return {
      .kind = "adamw",
      .summary = "Adam with decoupled weight decay, as PyTorch has it.",
      .parameters = {ParamSpec::real_of("beta1",
                                        "Share of the mean gradient that is kept; below 1.")
                         .at_least(0)
                         .or_default(0.9),
                     ParamSpec::real_of("beta2", "Share of the mean square that is kept; below 1.")
                         .at_least(0)
                         .or_default(0.999),
                     ParamSpec::real_of("epsilon", "Added to the root of the mean square.")
                         .above(0)
                         .or_default(1e-8),
                     ParamSpec::real_of("weight_decay",
                                        "Times learning rate and weights, taken from the weights.")
                         .at_least(0)
                         .or_default(0.01)},
      .make = [](const Value& parameters) { return std::make_unique<AdamW>(parameters); }};
}

}  // namespace pipewright
