// Means over repeats, with their confidence intervals.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/base/ids.hpp"

namespace pipewright {

struct Interval {
  double low;
  double high;
};

struct MeanOfRepeats {
  double mean;
  std::optional<Interval> interval;  // nothing can be said from one value
};

/// Mean and two-sided 95 % confidence interval by Student's t:
/// mean +- t(0.975; n - 1) s / sqrt(n), s^2 = sum (x - mean)^2 / (n - 1). `values` is not empty.
MeanOfRepeats mean_with_confidence(std::span<const double> values);

struct CurvePoint {
  Tick tick;
  double value;
};

struct BandRow {
  Tick tick;
  MeanOfRepeats value;
};

/// The mean curve of repeats, at every tick at which one of them was observed. A curve keeps a
/// value until its next one, and its last one for ever. Curves begin at tick 0, their ticks rise.
/// The band ends before the first tick at which a curve is not finite.
std::vector<BandRow> confidence_band(std::span<const std::vector<CurvePoint>> curves);

}  // namespace pipewright
