// From parameters of a job and files to a Problem, and back to text.
#pragma once

#include <memory>
#include <vector>

#include "core/objectives/objective.hpp"
#include "core/objectives/transformer/problem.hpp"

namespace pipewright::transformer {

std::vector<ParamSpec> parameters();

/// Throws DataError for a text that cannot be read or is too short, ParamError for sizes that do
/// not fit each other.
Problem load(const Value& parameters, const ObjectiveContext& context);

/// As ObjectiveKind::generator.
std::unique_ptr<TextGenerator> make_generator(const Value& parameters, int stages,
                                              const Value& facts, Tensor weights);

}  // namespace pipewright::transformer
