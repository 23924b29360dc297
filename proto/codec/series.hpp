// The plain form of SeriesData (job.proto): a series of a run, down-sampled. encode() and decode()
// of api.hpp are defined for it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "proto/codec/api.hpp"

namespace pipewright {

enum class XAxis { tick = 1, updates = 2, microbatch = 3, index = 4, time = 5 };

struct SeriesPoint {
  std::int64_t x = 0;
  double value = 0;
};

/// Points with begin <= x < begin + width; at least one.
struct SeriesBucket {
  std::int64_t begin = 0;
  std::uint64_t count = 0;
  std::uint64_t not_finite = 0;
  std::int64_t first_x = 0, last_x = 0;
  double last = 0;
  std::optional<double> min, max;  // of the finite values
  std::int64_t min_x = 0, max_x = 0;
};

struct SeriesData {
  Series series = Series::objective;
  XAxis x = XAxis::tick;
  std::int64_t from = 0, to = 0;  // both included
  std::uint64_t count = 0;
  bool raw = true;
  std::vector<SeriesPoint> points;  // when raw
  std::uint64_t width = 0;          // when not, and:
  std::vector<SeriesBucket> buckets;
  std::uint64_t next_sequence = 1;
};

}  // namespace pipewright
