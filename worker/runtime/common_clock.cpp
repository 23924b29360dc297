#include "worker/runtime/common_clock.hpp"

#include <sys/prctl.h>

#include <chrono>
#include <fstream>

namespace pipewright {

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

const std::string& steady_clock_name() {
  static const std::string name = [] {
    std::string id;
    std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
    return id;
  }();
  return name;
}

void ClockOffset::add(const ClockExchange& e, bool is_same) {
  const std::int64_t round_trip = (e.came - e.asked) - (e.answered - e.received);
  const std::int64_t offset = ((e.received - e.asked) + (e.answered - e.came)) / 2;
  // One clock never shows a question before it was asked, nor an answer after it came.
  is_same_ = is_same_ && is_same && e.asked <= e.received && e.answered <= e.came;
  if (exchanges_++ == 0 || round_trip < round_trip_ns_) {
    round_trip_ns_ = round_trip;
    offset_ns_ = offset;
  }
}

bool ClockOffset::is_settled() const {
  static constexpr int exchanges_min = 32;
  static constexpr int exchanges_of_same_min = 4;
  return exchanges_ >= (is_same_ ? exchanges_of_same_min : exchanges_min);
}

PreciseSleeps::PreciseSleeps() {
  prctl(PR_SET_TIMERSLACK, 1000);
}

PreciseSleeps::~PreciseSleeps() {
  prctl(PR_SET_TIMERSLACK, 0);  // the default again
}

}  // namespace pipewright
