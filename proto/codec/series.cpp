#include "proto/codec/series.hpp"

#include "pipewright/v1/job.pb.h"
#include "proto/codec/wire.hpp"

namespace pipewright {
namespace {

void put(const SeriesBucket& plain, v1::SeriesBucket& message) {
  message.set_begin(plain.begin);
  message.set_count(plain.count);
  message.set_not_finite(plain.not_finite);
  message.set_first_x(plain.first_x);
  message.set_last_x(plain.last_x);
  message.set_last(plain.last);
  if (!plain.min) return;
  message.set_min(*plain.min);
  message.set_min_x(plain.min_x);
  message.set_max(*plain.max);
  message.set_max_x(plain.max_x);
}

SeriesBucket get(const v1::SeriesBucket& message) {
  SeriesBucket plain{.begin = message.begin(),
                     .count = message.count(),
                     .not_finite = message.not_finite(),
                     .first_x = message.first_x(),
                     .last_x = message.last_x(),
                     .last = message.last(),
                     .min = {},
                     .max = {},
                     .min_x = message.min_x(),
                     .max_x = message.max_x()};
  if (message.has_min()) plain.min = message.min();
  if (message.has_max()) plain.max = message.max();
  return plain;
}

}  // namespace

template <>
std::string encode(const SeriesData& plain, WireFormat format) {
  v1::SeriesData message;
  message.set_series(static_cast<v1::Point::Series>(plain.series));
  message.set_x(static_cast<v1::XAxis>(plain.x));
  message.set_from(plain.from);
  message.set_to(plain.to);
  message.set_count(plain.count);
  message.set_raw(plain.raw);
  for (const SeriesPoint& point : plain.points) {
    v1::SeriesPoint& added = *message.add_points();
    added.set_x(point.x);
    added.set_value(point.value);
  }
  message.set_width(plain.width);
  for (const SeriesBucket& bucket : plain.buckets) put(bucket, *message.add_buckets());
  message.set_next_sequence(plain.next_sequence);
  return wire::serialize(message, format);
}

template <>
SeriesData decode<SeriesData>(std::string_view bytes, WireFormat format) {
  v1::SeriesData message;
  wire::parse(bytes, format, message);
  const auto known = [](bool valid, int number, auto plain, std::string_view field) {
    return wire::enum_from<decltype(plain)>(number, valid, "SeriesData", field);
  };
  SeriesData plain;
  plain.series =
      known(v1::Point::Series_IsValid(message.series()), message.series(), Series{}, "series");
  plain.x = known(v1::XAxis_IsValid(message.x()), message.x(), XAxis{}, "x");
  plain.from = message.from();
  plain.to = message.to();
  plain.count = message.count();
  plain.raw = message.raw();
  for (const v1::SeriesPoint& point : message.points()) {
    plain.points.push_back({point.x(), point.value()});
  }
  plain.width = message.width();
  for (const v1::SeriesBucket& bucket : message.buckets()) plain.buckets.push_back(get(bucket));
  plain.next_sequence = message.next_sequence();
  return plain;
}

}  // namespace pipewright
