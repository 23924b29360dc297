#include "core/train/learning_rate.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/error.hpp"

namespace pipewright {

LearningRate::LearningRate(const Value& parameters)
    : rate_(parameters.at("learning_rate").as_real()) {
  const Value* schedule = parameters.find("learning_rate_schedule");
  if (schedule == nullptr) return;
  const auto& [kind, given] = schedule->as_map().front();
  if (kind == "constant") return;
  warm_up_ = static_cast<double>(given.at("warm_up").as_integer());
  if (kind == "inverse_sqrt") {
    form_ = Form::inverse_sqrt;
    return;
  }
  form_ = Form::warm_up_cosine;
  end_ = static_cast<double>(given.at("updates").as_integer());
  final_ = given.at("final").as_real();
  if (warm_up_ >= end_) {
    throw ParamError("learning_rate_schedule.warm_up_cosine.warm_up",
                     "must be below 'updates', which is " +
                         std::to_string(given.at("updates").as_integer()) + ", found " +
                         std::to_string(given.at("warm_up").as_integer()));
  }
}

double LearningRate::at(std::int64_t updates) const {
  return form_ == Form::constant ? rate_ : rate_ * factor(static_cast<double>(updates));
}

double LearningRate::factor(double updates) const {
  if (form_ == Form::inverse_sqrt) {
    return std::min((updates + 1) / warm_up_, std::sqrt(warm_up_ / (updates + 1)));
  }
  if (updates < warm_up_) return (updates + 1) / warm_up_;
  if (updates >= end_) return final_;
  const double angle = std::numbers::pi * (updates - warm_up_) / (end_ - warm_up_);
  return final_ + (1 - final_) * (1 + std::cos(angle)) / 2;
}

ParamSpec LearningRate::spec() {
  return ParamSpec::real_of("learning_rate", "Step size.").at_least(0).needed();
}

ParamSpec LearningRate::schedule_spec() {
  return ParamSpec::one_of(
             "learning_rate_schedule",
             "What the learning rate is multiplied by at a block's update t = 0, 1, ... (its own "
             "updates count, those of its replica).",
             {ParamSpec::group_of("constant", "Times 1.", {}),
              ParamSpec::group_of(
                  "warm_up_cosine",
                  "(t+1)/warm_up at first, then half a cosine from 1 down to `final`.",
                  {ParamSpec::integer_of("warm_up", "How long the rate rises.", "updates")
                       .at_least(0)
                       .or_default(0),
                   ParamSpec::integer_of("updates",
                                         "When it reaches `final`, where it stays; the warm-up "
                                         "counts.",
                                         "updates")
                       .at_least(1)
                       .needed(),
                   ParamSpec::real_of("final", "Share of the learning rate that is left.")
                       .at_least(0)
                       .at_most(1)
                       .or_default(0.0)}),
              ParamSpec::group_of(
                  "inverse_sqrt", "(t+1)/warm_up at first, then sqrt(warm_up/(t+1)).",
                  {ParamSpec::integer_of("warm_up", "How long the rate rises.", "updates")
                       .at_least(1)
                       .or_default(1)})})
      .or_default("constant");
}

}  // namespace pipewright
