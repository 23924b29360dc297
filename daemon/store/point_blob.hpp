// Consecutive points of a job as one compact blob (about 14 bytes a point): per point its series,
// the differences of time, tick, updates and microbatch to the point of the same series before it
// as zigzag varints, and the value's 8 bytes, little-endian.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"
#include "proto/codec/api.hpp"

namespace pipewright {

/// All of `events` must hold points.
std::string encode_points(std::span<const Event> events);

/// Events with the numbers first_sequence, first_sequence + 1, ... Throws DataError for bytes that
/// are not such a blob.
std::vector<Event> decode_points(std::string_view blob, std::uint64_t first_sequence);

/// Signed numbers in as few bytes as they need.
void append_varint(std::string& out, std::int64_t value);
void append_real(std::string& out, double value);

/// Reads them back. Throws DataError at the end of the bytes.
class BlobReader {
 public:
  explicit BlobReader(std::string_view bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}
  bool at_end() const { return at_ == end_; }
  std::uint8_t byte() {
    if (at_ == end_) throw DataError("a stored batch of points ends early");
    return static_cast<std::uint8_t>(*at_++);
  }
  std::int64_t varint() {
    if (at_ == end_ || (*at_ & 0x80) != 0) return long_varint();
    const auto bits = static_cast<std::uint64_t>(*at_++);
    return static_cast<std::int64_t>((bits >> 1) ^ (~(bits & 1) + 1));
  }
  double real();

 private:
  std::int64_t long_varint();

  const char* at_;
  const char* end_;
};

/// Goes through the points of a blob. Throws DataError.
class PointReader {
 public:
  explicit PointReader(std::string_view blob);
  /// The next one is in point() and time_unix_ms(); false when there are no more.
  bool next();
  const Point& point() const { return point_; }
  std::int64_t time_unix_ms() const { return time_unix_ms_; }

 private:
  struct Fields {
    std::int64_t time = 0, tick = 0, updates = 0, microbatch = 0;
  };

  BlobReader in_;
  static constexpr std::size_t series_max = 32;
  std::array<Fields, series_max> before_{};  // by series
  Point point_;
  std::int64_t time_unix_ms_ = 0;
};

}  // namespace pipewright
