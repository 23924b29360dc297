// What an axis has to show.
#pragma once

#include <algorithm>
#include <limits>

namespace pipewright::cli {

/// From the least to the greatest of the values added; empty before the first.
struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
};

}  // namespace pipewright::cli
