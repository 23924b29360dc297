// Random times on top of fixed ones.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/ids.hpp"
#include "core/base/params.hpp"
#include "core/base/random.hpp"

namespace pipewright {

/// How a time varies from draw to draw. All draws come from the stream that is passed, so they
/// depend on its key alone.
class Jitter {
 public:
  /// The `jitter` parameter: {constant: T}, {uniform: {low, high}} and {exponential: {mean}} add a
  /// time, {lognormal: {sigma}} multiplies by exp(sigma z), z standard normal (median 1).
  static ParamSpec spec();
  /// From a checked value. Throws ParamError.
  static Jitter from(const Value& parameter);

  /// `base` with this jitter, rounded up to whole ticks.
  Tick apply(Tick base, RandomStream draws) const;

 private:
  enum class Kind { constant, uniform, exponential, lognormal };
  Kind kind_ = Kind::constant;
  double a_ = 0;  // constant, low, mean, sigma
  double b_ = 0;  // high
};

}  // namespace pipewright
