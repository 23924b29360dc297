// Optimizers: how a block's gradient changes its weights. State (momentum) belongs to the block and
// replica; an optimizer sees a block's updates in their order.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "core/base/registry.hpp"
#include "core/base/tensor.hpp"

namespace pipewright {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Writes the updated weights to `to`, which has the shape of `from` and may be the same tensor.
  /// `gradient` is used up.
  virtual void step(const Tensor& from, Tensor& to, Tensor& gradient) = 0;
};

struct OptimizerKind {
  std::string kind;
  std::string summary;
  std::vector<ParamSpec> parameters;
  /// One optimizer for one block; `parameters` have been checked.
  std::function<std::unique_ptr<Optimizer>(const Value& parameters)> make;
  /// gamma, where every update is w - gamma g and nothing else; nothing otherwise.
  std::function<std::optional<double>(const Value& parameters)> plain_step = {};
};

using OptimizerRegistry = Registry<OptimizerKind>;

/// The registry with all optimizers of this program in it.
const OptimizerRegistry& optimizers();

}  // namespace pipewright
