// Waiting without spinning: a loop that polls calls wait() after a turn in which nothing moved.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <functional>

namespace pipewright {

/// First gives the core away, then sleeps longer and longer, up to a maximum. What a rank waits for
/// is mostly made by another rank on the same core, so spinning would delay it.
class Backoff {
 public:
  void reset() { idle_turns_ = 0; }

  /// `sleep` sleeps up to the time given, or until there is something to do.
  template <class Sleep>
  void wait(std::chrono::microseconds longest, Sleep&& sleep) {
    ++idle_turns_;
    if (idle_turns_ <= yields) {
      sched_yield();
      return;
    }
    const int doublings = std::min((idle_turns_ - yields) / turns_per_doubling, 10);
    sleep(std::min(std::chrono::microseconds(20 << doublings), longest));
  }

 private:
  static constexpr int yields = 50;
  static constexpr int turns_per_doubling = 8;
  int idle_turns_ = 0;
};

}  // namespace pipewright
