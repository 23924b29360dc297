// What the down-sampling of a series needs to know of consecutive points of it without reading
// them: how many, where they lie on each axis, and the first, last, least and greatest.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "proto/codec/series.hpp"

namespace pipewright {

/// Where a point lies: [axis - 1], so by tick, updates, microbatch, index, time.
using PointPlace = std::array<std::int64_t, 5>;

struct PlacedValue {
  PointPlace place{};
  double value = 0;
};

/// `index`: the number of the point in its series.
inline PlacedValue placed_value(const Point& point, std::int64_t index, std::int64_t time_unix_ms) {
  return {{point.tick, point.updates, point.microbatch, index, time_unix_ms}, point.value};
}

struct PointSummary {
  std::uint64_t count = 0;
  std::uint64_t not_finite = 0;
  PointPlace low{}, high{};  // on each axis by itself
  PlacedValue first, last;
  PlacedValue min, max;  // of the finite values, if there are any; the first of equals

  /// Points come in their order.
  void add(const PlacedValue& point);
};

std::string encode_summary(const PointSummary& summary);
/// Throws DataError for bytes that are not one.
PointSummary decode_summary(std::string_view blob);

}  // namespace pipewright
