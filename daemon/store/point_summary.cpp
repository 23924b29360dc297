#include "daemon/store/point_summary.hpp"

#include <algorithm>
#include <cmath>

#include "daemon/store/point_blob.hpp"

namespace pipewright {
namespace {

void append(std::string& out, const PointPlace& place, const PointPlace& relative_to) {
  for (std::size_t axis = 0; axis < place.size(); ++axis) {
    append_varint(out, static_cast<std::int64_t>(static_cast<std::uint64_t>(place[axis]) -
                                                 static_cast<std::uint64_t>(relative_to[axis])));
  }
}

PointPlace place_from(BlobReader& in, const PointPlace& relative_to) {
  PointPlace place{};
  for (std::size_t axis = 0; axis < place.size(); ++axis) {
    place[axis] = static_cast<std::int64_t>(static_cast<std::uint64_t>(relative_to[axis]) +
                                            static_cast<std::uint64_t>(in.varint()));
  }
  return place;
}

}  // namespace

void PointSummary::add(const PlacedValue& here) {
  if (count == 0) {
    first = here;
    low = high = here.place;
  }
  for (std::size_t axis = 0; axis < low.size(); ++axis) {
    low[axis] = std::min(low[axis], here.place[axis]);
    high[axis] = std::max(high[axis], here.place[axis]);
  }
  last = here;
  if (!std::isfinite(here.value)) {
    ++not_finite;
  } else {
    const bool none = count == not_finite;
    if (none || here.value < min.value) min = here;
    if (none || here.value > max.value) max = here;
  }
  ++count;
}

/// Of a single point its place and value say it all.
std::string encode_summary(const PointSummary& summary) {
  std::string out;
  append_varint(out, static_cast<std::int64_t>(summary.count));
  append(out, summary.first.place, {});
  append_real(out, summary.first.value);
  if (summary.count == 1) return out;
  append_varint(out, static_cast<std::int64_t>(summary.not_finite));
  for (const PointPlace* place : {&summary.low, &summary.high}) {
    append(out, *place, summary.first.place);
  }
  for (const PlacedValue* value : {&summary.last, &summary.min, &summary.max}) {
    append(out, value->place, summary.first.place);
    append_real(out, value->value);
  }
  return out;
}

PointSummary decode_summary(std::string_view blob) {
  BlobReader in(blob);
  PointSummary summary;
  const auto count = static_cast<std::uint64_t>(in.varint());
  const PointPlace first = place_from(in, {});
  const double first_value = in.real();
  if (count == 1) {
    summary.add({first, first_value});
    return summary;
  }
  summary.count = count;
  summary.first = {first, first_value};
  summary.not_finite = static_cast<std::uint64_t>(in.varint());
  for (PointPlace* place : {&summary.low, &summary.high}) *place = place_from(in, first);
  for (PlacedValue* value : {&summary.last, &summary.min, &summary.max}) {
    value->place = place_from(in, first);
    value->value = in.real();
  }
  return summary;
}

}  // namespace pipewright
