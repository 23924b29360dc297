// Known results beside measured values: what theory says about a schedule, and whether a timeline
// agrees. A schedule plug-in declares those that hold for its parameters under the cost and link
// model that it is given; where none is known it declares none.
#pragma once

#include <string>
#include <vector>

#include "core/base/value.hpp"

namespace pipewright {

struct KnownResult {
  enum class Relation { equal, at_most };  // measured to expected

  std::string what;     // "largest delay of the steady phase, updates"
  std::string formula;  // "floor(S^2 - S/2)"
  /// Which value of TimelineMetrics::to_value(): a dotted path. "per_stage.NAME" stands for one
  /// value of each stage.
  std::string metric;
  std::vector<double> expected;  // one, or one per stage
  Relation relation = Relation::equal;

  static KnownResult of(std::string what, std::string formula, std::string metric, double expected,
                        Relation relation = Relation::equal) {
    return {std::move(what), std::move(formula), std::move(metric), {expected}, relation};
  }
};

/// [{what, formula, metric, expected, measured, holds}] as summaries show it; numbers per stage are
/// lists. A result whose metric is null (the run is too short for it) is left out. `holds` allows
/// the rounding of a few sums, 1e-12.
Value compare_known(const std::vector<KnownResult>& known, const Value& metrics);

}  // namespace pipewright
