// What the down-sampling of a series needs to know of consecutive points of it without reading
// them: how many, where they lie on each axis, and the first, last, least and greatest.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "proto/codec/series.hpp"

namespace pipewright {

/// Where a point lies: [axis - 1], so by tick, updates, microbatch, index.
using PointPlace = std::array<std::int64_t, 4>;

struct PlacedValue {
  PointPlace place{};
  double value = 0;
};

struct PointSummary {
  std::uint64_t count = 0;
  std::uint64_t not_finite = 0;
  PointPlace low{}, high{};  // on each axis by itself
  PlacedValue first, last;
  PlacedValue min, max;  // of the finite values, if there are any; the first of equals

  /// `index`: the number of the point in its series. Points come in their order.
  void add(const Point& point, std::int64_t index);
};

std::string encode_summary(const PointSummary& summary);
/// Throws DataError for bytes that are not one.
PointSummary decode_summary(std::string_view blob);

}  // namespace pipewright
