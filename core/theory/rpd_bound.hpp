// The bound on Randomized PipeDream (stale block SGD), arXiv 2606.03498.
#pragma once

#include <cstdint>

namespace pipewright::theory {

struct RpdBound {
  int stages = 1;            // S
  double start_value = 0;    // f(w_0)
  double optimum = 0;        // f*
  double step = 0;           // gamma > 0
  std::int64_t updates = 0;  // K > 0
  double smoothness = 0;     // L
  double gradient_norm = 0;  // G: at least every norm of a block's stochastic gradient
  std::int64_t delay = 0;    // delta: at least every delay, in updates

  /// On the mean of ||grad f(w_k)||^2 over k < K:
  /// 2 S (f0 - f*) / (gamma K) + gamma S L G^2 + gamma^2 L^2 delta^2 G^2.
  double value() const;
};

}  // namespace pipewright::theory
