// The common clock of a real run: that of its coordinator. Every rank measures how far its own
// steady clock is from it when the run begins.
#pragma once

#include <cstdint>
#include <string>

namespace pipewright {

/// This machine's steady clock, in nanoseconds.
std::int64_t steady_ns();
/// Names that clock: processes that see the same name see the same clock. Empty when unknown.
const std::string& steady_clock_name();

/// A question to another clock and its answer, in nanoseconds of whoever looked.
struct ClockExchange {
  std::int64_t asked = 0;     // by this clock
  std::int64_t received = 0;  // by the other
  std::int64_t answered = 0;  // by the other
  std::int64_t came = 0;      // by this clock
};

/// What exchanges say about the other clock: NTP's formula (RFC 5905, section 8) for the one with
/// the shortest round trip, which bounds the error.
class ClockOffset {
 public:
  /// `is_same`: both sides say that they have the same clock. It is believed unless the exchange
  /// contradicts it.
  void add(const ClockExchange& exchange, bool is_same);
  /// Whether more exchanges would hardly make it better.
  bool is_settled() const;

  /// What has to be added to this clock to get the other's time.
  std::int64_t offset_ns() const { return is_same_ ? 0 : offset_ns_; }
  /// How wrong the offset can be at most (if clocks do not drift): half of the round trip.
  std::int64_t error_ns() const { return is_same_ ? 0 : round_trip_ns_ / 2; }

 private:
  int exchanges_ = 0;
  std::int64_t offset_ns_ = 0;
  std::int64_t round_trip_ns_ = 0;
  bool is_same_ = true;  // until one exchange says otherwise
};

/// Lets sleeps of this thread end when they are to, rather than up to 50 us later, as long as it
/// exists.
class PreciseSleeps {
 public:
  PreciseSleeps();
  ~PreciseSleeps();
  PreciseSleeps(const PreciseSleeps&) = delete;
  PreciseSleeps& operator=(const PreciseSleeps&) = delete;
};

}  // namespace pipewright
