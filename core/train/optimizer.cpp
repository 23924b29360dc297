#include "core/train/optimizer.hpp"

#include <cmath>

#include "core/base/tensor_math.hpp"
#include "core/train/optimizers/kinds.hpp"

namespace pipewright {

namespace {

/// Lanes are added up side by side, which a compiler may do in vectors without changing the order.
template <class T>
double norm_as(const Tensor& tensor) {
  static constexpr Index lanes = 16;
  const T* const x = tensor.data<T>();
  const Index n = tensor.elements();
  double sums[lanes] = {};
  Index i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (Index lane = 0; lane < lanes; ++lane) {
      const double value = x[i + lane];
      sums[lane] += value * value;
    }
  }
  for (Index lane = 0; i < n; ++i, ++lane) sums[lane] += static_cast<double>(x[i]) * x[i];
  double sum = 0;
  for (const double part : sums) sum += part;
  return std::sqrt(sum);
}

template <class T>
void scale(Tensor& tensor, double factor) {
  vec<T>(tensor) *= static_cast<T>(factor);
}

void clip(Tensor& gradient, double norm_max) {
  static constexpr double epsilon = 1e-6;  // PyTorch's, against a division by zero
  const double factor = norm_max / (norm_of(gradient) + epsilon);
  if (!(factor < 1)) return;  // nan too: a run that diverges shows it by itself
  if (gradient.dtype() == DType::float32) {
    scale<float>(gradient, factor);
  } else {
    scale<double>(gradient, factor);
  }
}

/// The kind with the parameters that all have: the learning rate first, the rest last.
OptimizerKind with_common_parameters(OptimizerKind kind) {
  kind.parameters.insert(kind.parameters.begin(), LearningRate::spec());
  kind.parameters.push_back(
      ParamSpec::real_of("clip_norm",
                         "A block's gradient with a longer norm is scaled down to this one; "
                         "without it none is.")
          .above(0));
  kind.parameters.push_back(LearningRate::schedule_spec());
  return kind;
}

}  // namespace

Optimizer::Optimizer(const Value& parameters) : learning_rate_(parameters) {
  if (const Value* norm = parameters.find("clip_norm")) clip_norm_ = norm->as_real();
}

void Optimizer::step(const Tensor& from, Tensor& to, Tensor& gradient) {
  if (clip_norm_) clip(gradient, *clip_norm_);
  apply(from, to, gradient, learning_rate_.at(updates_++));
}

void Optimizer::archive(Archive& archive) {
  archive(updates_);
  archive_own(archive);
}

const OptimizerRegistry& optimizers() {
  // Not self-registering: these live in a library, which drops files that nothing refers to.
  static const OptimizerRegistry registry = [] {
    OptimizerRegistry all;
    all.add(with_common_parameters(adamw_kind()));
    all.add(with_common_parameters(sgd_kind()));
    return all;
  }();
  return registry;
}

std::optional<double> plain_step(const OptimizerKind& optimizer, const Value& parameters) {
  const Value* schedule = parameters.find("learning_rate_schedule");
  const bool is_constant = schedule == nullptr || schedule->has("constant");
  const double step = parameters.at("learning_rate").as_real();
  const bool is_plain = optimizer.is_plain && optimizer.is_plain(parameters) && is_constant &&
                        !parameters.has("clip_norm") && step > 0;
  return is_plain ? std::optional(step) : std::nullopt;
}

double norm_of(const Tensor& tensor) {
  return tensor.dtype() == DType::float32 ? norm_as<float>(tensor) : norm_as<double>(tensor);
}

}  // namespace pipewright
