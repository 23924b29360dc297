#include "core/base/error.hpp"
#include "core/base/tensor_math.hpp"
#include "core/train/optimizers/kinds.hpp"

namespace pipewright {

namespace {

class Sgd : public Optimizer {
 public:
  explicit Sgd(const Value& parameters)
      : Optimizer(parameters),
        momentum_(parameters.at("momentum").as_real()),
        weight_decay_(parameters.at("weight_decay").as_real()),
        nesterov_(parameters.at("nesterov").as_bool()) {
    if (nesterov_ && momentum_ == 0) {
      throw ParamError("nesterov", "needs a momentum above 0");
    }
  }

 private:
  void apply(const Tensor& from, Tensor& to, Tensor& gradient, double rate) override {
    if (from.dtype() == DType::float32) {
      apply_as<float>(from, to, gradient, static_cast<float>(rate));
    } else {
      apply_as<double>(from, to, gradient, rate);
    }
  }

  void archive_own(Archive& archive) override { archive(velocity_); }

  template <class T>
  void apply_as(const Tensor& from, Tensor& to, Tensor& gradient, T rate) {
    const auto w = vec<T>(from);
    auto out = vec<T>(to);
    auto g = vec<T>(gradient);
    if (weight_decay_ != 0) g += static_cast<T>(weight_decay_) * w;
    if (momentum_ == 0) {
      out = w - rate * g;
      return;
    }
    const T mu = static_cast<T>(momentum_);
    if (velocity_.empty()) {
      velocity_ = gradient.clone();
    } else {
      auto v = vec<T>(velocity_);
      v = mu * v + g;
    }
    const auto v = vec<T>(velocity_);
    if (nesterov_) {
      out = w - rate * (g + mu * v);
    } else {
      out = w - rate * v;
    }
  }

  double momentum_;
  double weight_decay_;
  bool nesterov_;
  Tensor velocity_;
};

}  // namespace

OptimizerKind sgd_kind() {
  return {.kind = "sgd",
          .summary = "Stochastic gradient descent with optional momentum and weight decay.",
          .parameters =
              {ParamSpec::real_of("momentum", "Share of the last step that is kept.")
                   .at_least(0)
                   .at_most(1)
                   .or_default(0.0),
               ParamSpec::real_of("weight_decay", "Times the weights, added to the gradient.")
                   .at_least(0)
                   .or_default(0.0),
               ParamSpec::boolean_of("nesterov", "Nesterov's form of momentum.").or_default(false)},
          .make = [](const Value& parameters) { return std::make_unique<Sgd>(parameters); },
          .is_plain =
              [](const Value& parameters) {
                return parameters.at("momentum").as_real() == 0 &&
                       parameters.at("weight_decay").as_real() == 0;
              }};
}

}  // namespace pipewright
