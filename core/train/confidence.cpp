#include "core/train/confidence.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "core/base/check.hpp"

namespace pipewright {

MeanOfRepeats mean_with_confidence(std::span<const double> values) {
  PW_CHECK(!values.empty(), "a mean of nothing");
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  if (*least == *most && values.size() > 1) {  // exactly, without the rounding of a sum
    return {*least, Interval{*least, *least}};
  }
  const auto n = static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += value;
  MeanOfRepeats result{sum / n, {}};
  if (values.size() == 1) return result;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  const double t = boost::math::quantile(boost::math::students_t(n - 1), 0.975);
  const double half = t * std::sqrt(squares / (n - 1) / n);
  result.interval = Interval{result.mean - half, result.mean + half};
  return result;
}

std::vector<BandRow> confidence_band(std::span<const std::vector<CurvePoint>> curves) {
  std::vector<BandRow> band;
  std::vector<std::size_t> next(curves.size(), 0);  // of each curve: the first beyond the tick
  std::vector<double> values(curves.size());
  while (!curves.empty()) {
    std::optional<Tick> tick;
    for (std::size_t c = 0; c < curves.size(); ++c) {
      if (next[c] == curves[c].size()) continue;
      const Tick candidate = curves[c][next[c]].tick;
      if (!tick || candidate < *tick) tick = candidate;
    }
    if (!tick) break;
    for (std::size_t c = 0; c < curves.size(); ++c) {
      while (next[c] < curves[c].size() && curves[c][next[c]].tick == *tick) {
        values[c] = curves[c][next[c]++].value;
      }
      if (next[c] == 0 || !std::isfinite(values[c])) return band;
    }
    band.push_back({*tick, mean_with_confidence(values)});
  }
  return band;
}

}  // namespace pipewright
