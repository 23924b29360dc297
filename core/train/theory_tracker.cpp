#include "core/train/theory_tracker.hpp"

#include <algorithm>

#include "core/theory/rpd_bound.hpp"
#include "core/train/optimizer.hpp"

namespace pipewright {

TheoryTracker::TheoryTracker(const JobConfig& job, const ObjectiveTheory& known)
    : known_(known), stages_(job.schedule_header().stages) {
  const auto step = plain_step(optimizers().at(job.optimizer_kind), job.optimizer);
  step_ = step.value_or(0);
  if (!known_.smoothness || !known_.optimum) {
    bound_left_out_ = "smoothness or optimum of the objective is not known";
  } else if (!step) {
    bound_left_out_ =
        "it is for plain SGD with a constant step above 0: no momentum, no weight decay, no "
        "clipping";
  } else if (job.schedule_header().replicas > 1) {
    bound_left_out_ = "it is not for the average of replicas";
  }
}

void TheoryTracker::update(double gradient_norm) {
  gradient_norm_max_ = std::max(gradient_norm_max_, gradient_norm);
}

std::optional<double> TheoryTracker::bound(UpdateCount updates) const {
  if (!bound_left_out_.empty() || updates.value == 0) return std::nullopt;
  return theory::RpdBound{.stages = stages_,
                          .start_value = *start_value_,
                          .optimum = *known_.optimum,
                          .step = step_,
                          .updates = updates.value,
                          .smoothness = *known_.smoothness,
                          .gradient_norm = gradient_norm_max_,
                          .delay = delay_max_}
      .value();
}

TheoryRow TheoryTracker::observe(Tick tick, UpdateCount updates, double value,
                                 double gradient_norm_sq, std::int64_t delay_max) {
  if (!start_value_) start_value_ = value;
  delay_max_ = delay_max;
  sum_ += gradient_norm_sq;
  ++observations_;
  TheoryRow row{
      tick,           updates,     gradient_norm_sq, sum_ / static_cast<double>(observations_),
      bound(updates), std::nullopt};
  if (known_.optimum) row.gap = value - *known_.optimum;
  last_ = row;
  return row;
}

Value TheoryTracker::to_value() const {
  const auto number = [](const std::optional<double>& v) { return v ? Value(*v) : Value(); };
  Value value = Value::map();
  value.set("smoothness", number(known_.smoothness));
  value.set("optimum", number(known_.optimum));
  value.set("gradient_norm_max", gradient_norm_max_);
  value.set("delay_max", delay_max_);
  value.set("gradient_norm_sq", last_ ? Value(last_->gradient_norm_sq) : Value());
  value.set("gradient_norm_sq_mean", last_ ? Value(last_->gradient_norm_sq_mean) : Value());
  value.set("bound", last_ ? number(last_->bound) : Value());
  value.set("gap", last_ ? number(last_->gap) : Value());
  if (!bound_left_out_.empty()) value.set("bound_left_out", bound_left_out_);
  return value;
}

}  // namespace pipewright
