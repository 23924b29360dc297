// Optimizers: how a block's gradient changes its weights. State (momentum, moments, the count of
// updates) belongs to a block and replica; an optimizer sees a block's updates in their order, and
// a LocalSGD sync averages weights and leaves the state alone. What all of them have (learning
// rate and its schedule, clipping) is in the base class; a kind is one file in optimizers/.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "core/base/archive.hpp"
#include "core/base/registry.hpp"
#include "core/base/tensor.hpp"
#include "core/train/learning_rate.hpp"

namespace pipewright {

class Optimizer {
 public:
  /// `parameters` have been checked. Throws ParamError for what does not fit together.
  explicit Optimizer(const Value& parameters);
  virtual ~Optimizer() = default;

  /// Writes the updated weights to `to`, which has the shape of `from` and may be the same tensor.
  /// `gradient` is used up: with `clip_norm` c and ||g|| > c it first becomes g c / (||g|| + 1e-6),
  /// as torch.nn.utils.clip_grad_norm_ has it, of this block alone. Allocates at the first step
  /// only.
  void step(const Tensor& from, Tensor& to, Tensor& gradient);

  /// Writes or reads all that a step depends on beside its arguments.
  void archive(Archive& archive);

 private:
  /// One update with the learning rate `rate`.
  virtual void apply(const Tensor& from, Tensor& to, Tensor& gradient, double rate) = 0;
  /// The same of what a kind has of its own.
  virtual void archive_own(Archive& archive) = 0;

  LearningRate learning_rate_;
  std::optional<double> clip_norm_;
  std::int64_t updates_ = 0;
};

struct OptimizerKind {
  std::string kind;
  std::string summary;
  std::vector<ParamSpec> parameters;  // in the registry also those of all optimizers
  /// One optimizer for one block; `parameters` have been checked.
  std::function<std::unique_ptr<Optimizer>(const Value& parameters)> make;
  /// Whether an update is w - rate g and nothing else; without it never.
  std::function<bool(const Value& parameters)> is_plain = {};
};

using OptimizerRegistry = Registry<OptimizerKind>;

/// The registry with all optimizers of this program in it.
const OptimizerRegistry& optimizers();

/// gamma, where every update is w - gamma g and nothing else (so no momentum, decay, clipping or
/// schedule) with gamma above 0; nothing otherwise.
std::optional<double> plain_step(const OptimizerKind& optimizer, const Value& parameters);

/// The Euclidean norm of all elements, added up in double in one fixed order.
double norm_of(const Tensor& tensor);

}  // namespace pipewright
