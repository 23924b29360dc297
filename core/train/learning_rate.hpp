// Learning rates that change from update to update. With t = 0, 1, ... the number of updates that
// the block (of its replica) has had before, the rate of an update is the learning rate times
//
//   constant          1
//   warm_up_cosine    (t + 1) / W                                     for t < W
//                     F + (1 - F) (1 + cos(pi (t - W) / (N - W))) / 2  for W <= t < N
//                     F                                               from N on
//   inverse_sqrt      min((t + 1) / W, sqrt(W / (t + 1)))
//
// with W = warm_up, N = updates, F = final. The cosine is equation (5) of Loshchilov and Hutter,
// "SGDR: Stochastic Gradient Descent with Warm Restarts" (ICLR 2017), without restarts; the inverse
// square root is equation (3) of Vaswani et al., "Attention Is All You Need" (NIPS 2017), with its
// peak, at t = W - 1, scaled to 1.
#pragma once

#include <cstdint>

#include "core/base/params.hpp"

namespace pipewright {

class LearningRate {
 public:
  /// Of an optimizer's checked parameters: `learning_rate` and, if there is one, its schedule.
  /// Throws ParamError for a warm-up that leaves no updates.
  explicit LearningRate(const Value& parameters);

  /// The rate of the update that comes after `updates` others.
  double at(std::int64_t updates) const;

  static ParamSpec spec();
  static ParamSpec schedule_spec();

 private:
  enum class Form : std::uint8_t { constant, warm_up_cosine, inverse_sqrt };

  double factor(double updates) const;

  double rate_ = 0;
  Form form_ = Form::constant;
  double warm_up_ = 0;
  double end_ = 0;
  double final_ = 0;
};

}  // namespace pipewright
