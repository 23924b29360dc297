#include "core/train/optimizer.hpp"
#include "core/base/tensor_math.hpp"

namespace pipewright {

namespace {

/// Stochastic gradient descent as PyTorch defines it (torch.optim.SGD), so that numbers compare:
///   g <- gradient + weight_decay w;  v <- momentum v + g (v = g at first);
///   w <- w - learning_rate v, or with Nesterov w <- w - learning_rate (g + momentum v).
class Sgd : public Optimizer {
 public:
  explicit Sgd(const Value& parameters)
      : learning_rate_(parameters.at("learning_rate").as_real()),
        momentum_(parameters.at("momentum").as_real()),
        weight_decay_(parameters.at("weight_decay").as_real()),
        nesterov_(parameters.at("nesterov").as_bool()) {
    if (nesterov_ && momentum_ == 0) {
      throw ParamError("nesterov", "needs a momentum above 0");
    }
  }

  void step(const Tensor& from, Tensor& to, Tensor& gradient) override {
    if (from.dtype() == DType::float32) {
      step_as<float>(from, to, gradient);
    } else {
      step_as<double>(from, to, gradient);
    }
  }

 private:
  template <class T>
  void step_as(const Tensor& from, Tensor& to, Tensor& gradient) {
    const auto w = vec<T>(from);
    auto out = vec<T>(to);
    auto g = vec<T>(gradient);
    const T rate = static_cast<T>(learning_rate_);
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

  double learning_rate_;
  double momentum_;
  double weight_decay_;
  bool nesterov_;
  Tensor velocity_;
};

std::optional<double> plain_step(const Value& parameters) {
  const double step = parameters.at("learning_rate").as_real();
  const bool is_plain = parameters.at("momentum").as_real() == 0 &&
                        parameters.at("weight_decay").as_real() == 0 && step > 0;
  return is_plain ? std::optional(step) : std::nullopt;
}

OptimizerKind sgd_kind() {
  return {.kind = "sgd",
          .summary = "Stochastic gradient descent with optional momentum and weight decay.",
          .parameters =
              {ParamSpec::real_of("learning_rate", "Step size.").at_least(0).needed(),
               ParamSpec::real_of("momentum", "Share of the last step that is kept.")
                   .at_least(0)
                   .at_most(1)
                   .or_default(0.0),
               ParamSpec::real_of("weight_decay", "Times the weights, added to the gradient.")
                   .at_least(0)
                   .or_default(0.0),
               ParamSpec::boolean_of("nesterov", "Nesterov's form of momentum.").or_default(false)},
          .make = [](const Value& parameters) { return std::make_unique<Sgd>(parameters); },
          .plain_step = plain_step};
}

}  // namespace

const OptimizerRegistry& optimizers() {
  // Not self-registering: these live in a library, which drops files that nothing refers to.
  static const OptimizerRegistry registry = [] {
    OptimizerRegistry all;
    all.add(sgd_kind());
    return all;
  }();
  return registry;
}

}  // namespace pipewright
