// A whole objective driven stage by stage, without schedule or executor: what tests of objectives
// use.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/objectives/objective.hpp"

namespace pipewright {

/// Loads a registered objective with checked parameters.
inline std::unique_ptr<Objective> load_objective(const std::string& kind, const Value& parameters,
                                                 int stages, FileSource& files) {
  const ObjectiveKind& entry = ObjectiveRegistry::instance().at(kind);
  const ParamSpec spec = ParamSpec::group_of(kind, entry.summary, entry.parameters);
  return entry.load(check_params(spec, parameters, ""), {stages, files});
}

/// All stages of an objective, with weights, gradients and saved state of one microbatch.
class Chain {
 public:
  explicit Chain(const Objective& objective) : shape(objective.shape()) {
    for (int s = 0; s < shape.stages; ++s) {
      models.push_back(objective.make_stage(Stage(s)));
      const Shape block{models.back()->parameter_count()};
      weights.push_back(Tensor::zeros(models.back()->dtype(), block));
      gradients.push_back(Tensor::zeros(models.back()->dtype(), block));
    }
    saved.resize(models.size());
  }

  void initialise_random(std::uint64_t seed) {
    for (std::size_t s = 0; s < models.size(); ++s) models[s]->initialise_random(seed, weights[s]);
  }

  double forward(Batch batch) {
    double loss = 0;
    Tensor x;
    for (std::size_t s = 0; s < models.size(); ++s) {
      x = models[s]->forward(batch, weights[s], std::move(x), saved[s], loss);
    }
    return loss;
  }

  void backward(Batch batch, bool need_gradient = true) {
    Tensor dx;
    for (std::size_t s = models.size(); s-- > 0;) {
      dx = models[s]->backward(batch, weights[s], saved[s], std::move(dx), gradients[s],
                               need_gradient);
    }
  }

  /// The full objective; `weights_id` as in StageModel::evaluate, for all stages.
  double evaluate(std::uint64_t weights_id) { return evaluation(weights_id).objective; }

  Evaluation evaluation(std::uint64_t weights_id) {
    Evaluation value;
    for (std::int64_t part = 0; part < models.front()->evaluation_parts(); ++part) {
      Tensor partial;
      for (std::size_t s = 0; s < models.size(); ++s) {
        partial = models[s]->evaluate(part, weights[s], weights_id, std::move(partial), value);
      }
    }
    return value;
  }

  ObjectiveShape shape;
  std::vector<std::unique_ptr<StageModel>> models;
  std::vector<Tensor> weights;
  std::vector<Tensor> gradients;
  std::vector<Saved> saved;
};

}  // namespace pipewright
