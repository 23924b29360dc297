#include "core/data/labels.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace pipewright {

namespace {

constexpr const char* right_labels =
    "; a two-class problem has labels 0 and 1, -1 and +1, or 1 and 2";
constexpr std::array<std::pair<double, double>, 3> valid_pairs{{{0, 1}, {-1, 1}, {1, 2}}};

}  // namespace

void map_to_two_classes(std::span<double> labels,
                        const std::function<std::string(std::size_t)>& where) {
  if (labels.empty()) return;
  const double first = labels.front();
  const auto other =
      std::find_if(labels.begin(), labels.end(), [&](double label) { return label != first; });
  if (other == labels.end()) {
    throw DataError(where(0) + ": every label from here on is " + format_number(first) + " (" +
                    std::to_string(labels.size()) + " examples)" + right_labels);
  }
  const double second = *other;
  const auto third = std::find_if(other, labels.end(),
                                  [&](double label) { return label != first && label != second; });
  const auto [low, high] = std::minmax(first, second);
  if (third != labels.end()) {
    throw DataError(where(static_cast<std::size_t>(third - labels.begin())) + ": label " +
                    format_number(*third) + " is a third one after " + format_number(low) +
                    " and " + format_number(high) + right_labels);
  }
  if (std::find(valid_pairs.begin(), valid_pairs.end(), std::pair(low, high)) ==
      valid_pairs.end()) {
    throw DataError(where(static_cast<std::size_t>(other - labels.begin())) +
                    ": the labels found are " + format_number(low) + " and " + format_number(high) +
                    right_labels);
  }
  // `low` and `high` refer to `first` and `second`, not to the span that is overwritten here.
  for (double& label : labels) label = label == high ? 1.0 : 0.0;
}

}  // namespace pipewright
