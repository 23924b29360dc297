#include "client/cli/view/smooth.hpp"

#include <cmath>

namespace pipewright::cli {

std::vector<PlotPoint> smoothed(std::span<const PlotPoint> points, double width) {
  std::vector<PlotPoint> out(points.begin(), points.end());
  if (!(width > 0)) return out;
  double sum = 0, weight = 0, previous = 0;
  for (PlotPoint& point : out) {
    if (!std::isfinite(point.y)) {
      sum = weight = 0;
      continue;
    }
    const double decay = weight > 0 ? std::exp(-std::abs(point.x - previous) / width) : 0;
    sum = sum * decay + point.y;
    weight = weight * decay + 1;
    previous = point.x;
    point.y = sum / weight;
  }
  return out;
}

double smoothing_width(int strength, double length) {
  return strength > 0 ? length * 0.0005 * std::pow(400, (strength - 1) / 99.0) : 0;
}

}  // namespace pipewright::cli
