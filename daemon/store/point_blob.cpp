#include "daemon/store/point_blob.hpp"

#include <array>
#include <bit>

#include "core/base/error.hpp"

namespace pipewright {
namespace {

static_assert(std::endian::native == std::endian::little, "values are copied as they lie");

constexpr char format_version = 1;

struct Fields {
  std::int64_t time = 0, tick = 0, updates = 0, microbatch = 0;
};

void append_varint(std::string& out, std::int64_t value) {
  auto bits = (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
  for (; bits >= 0x80; bits >>= 7) out.push_back(static_cast<char>(bits | 0x80));
  out.push_back(static_cast<char>(bits));
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  bool at_end() const { return at_ == bytes_.size(); }

  std::uint8_t byte() {
    if (at_end()) throw DataError("a stored batch of points ends early");
    return static_cast<std::uint8_t>(bytes_[at_++]);
  }

  std::int64_t varint() {
    std::uint64_t bits = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::uint8_t next = byte();
      bits |= static_cast<std::uint64_t>(next & 0x7f) << shift;
      if (next < 0x80) return static_cast<std::int64_t>((bits >> 1) ^ (~(bits & 1) + 1));
    }
    throw DataError("a stored batch of points holds a number of more than 64 bits");
  }

  double real() {
    std::array<char, sizeof(double)> raw{};
    for (char& c : raw) c = static_cast<char>(byte());
    return std::bit_cast<double>(raw);
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

// Differences are taken modulo 2^64, so that they exist for any two numbers.
std::int64_t minus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
std::int64_t plus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

}  // namespace

std::string encode_points(std::span<const Event> events) {
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
    const auto raw = std::bit_cast<std::array<char, sizeof(double)>>(point.value);
    out.append(raw.data(), raw.size());
    last = {event.time_unix_ms, point.tick, point.updates, point.microbatch};
  }
  return out;
}

std::vector<Event> decode_points(std::string_view blob, std::uint64_t first_sequence) {
  Reader in(blob);
  if (in.byte() != format_version) {
    throw DataError("a stored batch of points has a format that this version does not know");
  }
  std::vector<Event> events;
  std::array<Fields, 256> before{};
  while (!in.at_end()) {
    const std::uint8_t series = in.byte();
    Fields& last = before[series];
    last.time = plus(last.time, in.varint());
    last.tick = plus(last.tick, in.varint());
    last.updates = plus(last.updates, in.varint());
    last.microbatch = plus(last.microbatch, in.varint());
    events.push_back({.sequence = first_sequence++,
                      .time_unix_ms = last.time,
                      .what = Point{.series = static_cast<Series>(series),
                                    .tick = last.tick,
                                    .updates = last.updates,
                                    .microbatch = last.microbatch,
                                    .value = in.real()}});
  }
  return events;
}

}  // namespace pipewright
