// Whether a run was stable, from the values of its objective as they come: no blow-up, and no rise
// in its tail. Of a run that observes no objective the losses of its last stage say it; these are
// of single batches and go up and down, so no rise is seen in them. Keeps sums, not values.
// docs/sweeps.md gives the rule in words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/ids.hpp"
#include "core/base/value.hpp"

namespace pipewright {

class Stability {
 public:
  /// A value above this many times the first one is a blow-up.
  static constexpr double blow_up_factor = 10;
  /// The tail rises when the mean of its second half is above that of its first by more than this
  /// part of the first half's, plus this part of the first value of all (noise of rounding there).
  static constexpr double rise_relative = 1e-3;
  static constexpr double rise_floor = 1e-9;

  enum class Of : std::uint8_t { objective, losses };

  Stability() = default;
  /// Of a run with so many values. Its tail is the last quarter of them, at least two.
  explicit Stability(std::int64_t values, Of of = Of::objective);

  void add(Tick tick, double value);

  /// Sets `stable`, `unstable_because` where it is not, and `tail` {of: objective|last_stage_loss,
  /// from_tick, observations, mean, rise}; null for what is not known, because there were too few
  /// values or the run has ended before its tail. `fault` says where and why values were not
  /// finite, empty if they were.
  void describe(Value& summary, const std::string& fault) const;

 private:
  bool tail_is_complete() const { return seen_ == expected_ && expected_ >= 2; }
  double mean_of_half(int half) const;
  std::string why_unstable(const std::string& fault) const;

  Of of_ = Of::objective;
  std::int64_t expected_ = 0;
  std::int64_t seen_ = 0;
  std::int64_t tail_ = 0;  // values of it
  double first_ = 0;
  double sums_[2] = {0, 0};  // of the halves of the tail
  Tick tail_from_{0};
  struct BlowUp {
    Tick tick;
    double value;
  };
  std::optional<BlowUp> blow_up_;  // the first
};

}  // namespace pipewright
