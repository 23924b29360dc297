#include "daemon/store/point_blob.hpp"

#include <bit>
#include <cstring>

namespace pipewright {
namespace {

static_assert(std::endian::native == std::endian::little, "values are copied as they lie");

constexpr char format_version = 1;

// Differences are taken modulo 2^64, so that they exist for any two numbers.
std::int64_t minus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
std::int64_t plus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

}  // namespace

void append_varint(std::string& out, std::int64_t value) {
  auto bits = (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
  for (; bits >= 0x80; bits >>= 7) out.push_back(static_cast<char>(bits | 0x80));
  out.push_back(static_cast<char>(bits));
}

void append_real(std::string& out, double value) {
  const auto raw = std::bit_cast<std::array<char, sizeof(double)>>(value);
  out.append(raw.data(), raw.size());
}

std::int64_t BlobReader::long_varint() {
  std::uint64_t bits = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const std::uint8_t next = byte();
    bits |= static_cast<std::uint64_t>(next & 0x7f) << shift;
    if (next < 0x80) return static_cast<std::int64_t>((bits >> 1) ^ (~(bits & 1) + 1));
  }
  throw DataError("a stored batch of points holds a number of more than 64 bits");
}

double BlobReader::real() {
  if (static_cast<std::size_t>(end_ - at_) < sizeof(double)) {
    throw DataError("a stored batch of points ends early");
  }
  double value = 0;
  std::memcpy(&value, at_, sizeof value);
  at_ += sizeof value;
  return value;
}

std::string encode_points(std::span<const Event> events) {
  struct Fields {
    std::int64_t time = 0, tick = 0, updates = 0, microbatch = 0;
  };
  std::string out(1, format_version);
  out.reserve(1 + events.size() * 16);
  std::array<Fields, 256> before{};
  for (const Event& event : events) {
    const Point& point = std::get<Point>(event.what);
    const auto series = static_cast<std::uint8_t>(point.series);
    Fields& last = before[series];
    out.push_back(static_cast<char>(series));
    append_varint(out, minus(event.time_unix_ms, last.time));
    append_varint(out, minus(point.tick, last.tick));
    append_varint(out, minus(point.updates, last.updates));
    append_varint(out, minus(point.microbatch, last.microbatch));
    append_real(out, point.value);
    last = {event.time_unix_ms, point.tick, point.updates, point.microbatch};
  }
  return out;
}

PointReader::PointReader(std::string_view blob) : in_(blob) {
  if (in_.byte() != format_version) {
    throw DataError("a stored batch of points has a format that this version does not know");
  }
}

bool PointReader::next() {
  if (in_.at_end()) return false;
  const std::uint8_t series = in_.byte();
  if (series >= series_max) {
    throw DataError("a stored batch of points has a series that this version does not know");
  }
  Fields& last = before_[series];
  last.time = plus(last.time, in_.varint());
  last.tick = plus(last.tick, in_.varint());
  last.updates = plus(last.updates, in_.varint());
  last.microbatch = plus(last.microbatch, in_.varint());
  time_unix_ms_ = last.time;
  point_ = {.series = static_cast<Series>(series),
            .tick = last.tick,
            .updates = last.updates,
            .microbatch = last.microbatch,
            .value = in_.real()};
  return true;
}

std::vector<Event> decode_points(std::string_view blob, std::uint64_t first_sequence) {
  PointReader in(blob);
  std::vector<Event> events;
  while (in.next()) {
    events.push_back(
        {.sequence = first_sequence++, .time_unix_ms = in.time_unix_ms(), .what = in.point()});
  }
  return events;
}

}  // namespace pipewright
