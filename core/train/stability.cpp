#include "core/train/stability.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/text.hpp"

namespace pipewright {

Stability::Stability(std::int64_t values, Of of)
    : of_(of), expected_(values), tail_(std::min(values, std::max<std::int64_t>(2, values / 4))) {}

void Stability::add(Tick tick, double value) {
  if (seen_ == 0) first_ = value;
  if (!blow_up_ && value > blow_up_factor * first_) blow_up_ = BlowUp{tick, value};
  const std::int64_t place = seen_++ - (expected_ - tail_);
  if (place < 0) return;
  if (place == 0) tail_from_ = tick;
  sums_[place < tail_ / 2 ? 0 : 1] += value;
}

double Stability::mean_of_half(int half) const {
  const std::int64_t count = half == 0 ? tail_ / 2 : tail_ - tail_ / 2;
  return sums_[half] / static_cast<double>(count);
}

std::string Stability::why_unstable(const std::string& fault) const {
  if (!fault.empty()) return fault;
  if (blow_up_) {
    return std::string(of_ == Of::objective ? "the objective" : "the loss of the last stage") +
           " is " + format_number(blow_up_->value) + " at tick " +
           std::to_string(blow_up_->tick.value) + ", more than " + format_number(blow_up_factor) +
           " times its first value " + format_number(first_);
  }
  if (of_ == Of::losses) return "";
  const double before = mean_of_half(0);
  const double after = mean_of_half(1);
  if (after - before > rise_relative * std::abs(before) + rise_floor * std::abs(first_)) {
    return "the objective rises in its tail: from tick " + std::to_string(tail_from_.value) +
           " on its mean is " + format_number(before) + " in the first half and " +
           format_number(after) + " in the second";
  }
  return "";
}

void Stability::describe(Value& summary, const std::string& fault) const {
  if (fault.empty() && !tail_is_complete()) {
    summary.set("stable", Value());
  } else {
    const std::string why = why_unstable(fault);
    summary.set("stable", why.empty());
    if (!why.empty()) summary.set("unstable_because", why);
  }
  Value tail;
  if (fault.empty() && tail_is_complete()) {
    tail.set("of", of_ == Of::objective ? "objective" : "last_stage_loss");
    tail.set("from_tick", tail_from_.value);
    tail.set("observations", tail_);
    tail.set("mean", (sums_[0] + sums_[1]) / static_cast<double>(tail_));
    tail.set("rise", mean_of_half(1) - mean_of_half(0));
  }
  summary.set("tail", std::move(tail));
}

}  // namespace pipewright
