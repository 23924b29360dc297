// Writing with a language model: one token after the other is drawn from what the model gives.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/objectives/objective.hpp"

namespace pipewright {

struct SamplingOptions {
  double temperature = 0.8;  // 0: always the likeliest token
  std::int64_t top_k = 0;    // draws among so many of the likeliest only; 0: among all
};

/// A token by its logits l: among the `top_k` largest with probability proportional to
/// exp(l / temperature), the one at `uniform` (in (0, 1)) of the cumulative distribution in the
/// order of the tokens. Of equal logits the lowest tokens go first. Throws DataError when a logit
/// is not a finite number.
std::int32_t sample_token(std::span<const float> logits, const SamplingOptions& options,
                          double uniform);

/// Calls `write` with `count` tokens that continue `tokens` (at least one), each as soon as it is
/// there, until it gives false. The draw of token i depends on seed and i only.
void continue_text(TextGenerator& generator, std::vector<std::int32_t> tokens, std::int64_t count,
                   const SamplingOptions& options, std::uint64_t seed,
                   const std::function<bool(std::int32_t)>& write);

}  // namespace pipewright
