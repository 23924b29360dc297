// What theory speaks of, measured at each observation of a run that asks for it (docs/theory.md).
#pragma once

#include <optional>

#include "core/train/job.hpp"

namespace pipewright {

/// One observation.
struct TheoryRow {
  Tick tick;
  UpdateCount updates;
  double gradient_norm_sq = 0;       // ||grad f||^2 of the full objective
  double gradient_norm_sq_mean = 0;  // of this and all observations before
  std::optional<double> bound;       // on that mean, by RPD's theorem
  std::optional<double> gap;         // f - f*
};

class TheoryTracker {
 public:
  TheoryTracker(const JobConfig& job, const ObjectiveTheory& known);

  /// The norm of the gradient that an update took, in the global order.
  void update(double gradient_norm);
  /// `delay_max`: the largest delay so far, in updates.
  TheoryRow observe(Tick tick, UpdateCount updates, double value, double gradient_norm_sq,
                    std::int64_t delay_max);

  /// {smoothness, optimum, gradient_norm_max, delay_max, gradient_norm_sq, gradient_norm_sq_mean,
  /// bound, gap} at the last observation, null where unknown; `bound_left_out` says why there is no
  /// bound.
  Value to_value() const;

 private:
  std::optional<double> bound(UpdateCount updates) const;

  ObjectiveTheory known_;
  int stages_;
  double step_ = 0;  // gamma
  std::string bound_left_out_;
  std::optional<double> start_value_;
  double gradient_norm_max_ = 0;
  std::int64_t delay_max_ = 0;
  double sum_ = 0;
  std::int64_t observations_ = 0;
  std::optional<TheoryRow> last_;
};

}  // namespace pipewright
