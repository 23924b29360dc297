// A language model as an objective: tokens, sizes, and the stages that train on them.
//
// Sequence i is tokens [i T, (i + 1) T), to be followed by the same shifted by one; a batch is B
// sequences one behind the other. The last sequences are kept back for validation; of the others,
// those that fill no batch never train and count in the full objective.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/objectives/objective.hpp"
#include "core/objectives/transformer/parameters.hpp"

namespace pipewright::transformer {

struct Problem {
  ModelSizes sizes;
  int stages = 1;
  Index batch_size = 1;  // sequences
  Index training = 1;    // sequences, at least batch_size of them
  Index validation = 0;  // sequences behind those
  /// Batches of the training text, evenly spaced over it, that stand for all of it in an
  /// evaluation; 0: every sequence counts.
  Index evaluation_batches = 0;
  bool recompute = false;
  std::shared_ptr<const std::vector<std::int32_t>> tokens;
  Value facts;  // of ObjectiveShape
};

/// Losses are nats per token. The model computes in T: float in runs, double in tests of gradients.
template <class T>
std::unique_ptr<Objective> make_objective(const Problem& problem);

extern template std::unique_ptr<Objective> make_objective<float>(const Problem&);
extern template std::unique_ptr<Objective> make_objective<double>(const Problem&);

}  // namespace pipewright::transformer
