// Events by the tick in which they happen. Those of one tick come out together, in any order: a
// pipeline has many events in few ticks, so they wait in buckets and only buckets are in the heap.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "core/base/ids.hpp"

namespace pipewright {

template <class Event>
class TickQueue {
 public:
  bool empty() const { return ticks_.empty(); }
  Tick next_tick() const { return ticks_.top().first; }

  void add(Tick tick, const Event& event) {
    Recent& recent = recent_[static_cast<std::uint64_t>(tick.value) % recent_.size()];
    if (recent.tick != tick) recent = {tick, open(tick)};
    buckets_[recent.bucket].push_back(event);
  }

  /// Replaces `events` by all events of the next tick.
  void take_next(std::vector<Event>& events) {
    events.clear();
    const Tick tick = next_tick();
    Recent& recent = recent_[static_cast<std::uint64_t>(tick.value) % recent_.size()];
    if (recent.tick == tick) recent = {};
    // A tick that fell out of the recent ones in between has several buckets.
    for (; !ticks_.empty() && next_tick() == tick; ticks_.pop()) {
      const std::uint32_t bucket = ticks_.top().second;
      if (events.empty()) {
        std::swap(events, buckets_[bucket]);
      } else {
        events.insert(events.end(), buckets_[bucket].begin(), buckets_[bucket].end());
        buckets_[bucket].clear();
      }
      unused_.push_back(bucket);
    }
  }

 private:
  /// A bucket that is open for one more event of its tick.
  struct Recent {
    Tick tick{-1};
    std::uint32_t bucket = 0;
  };
  using Entry = std::pair<Tick, std::uint32_t>;

  std::uint32_t open(Tick tick) {
    if (unused_.empty()) {
      unused_.push_back(static_cast<std::uint32_t>(buckets_.size()));
      buckets_.emplace_back();
    }
    const std::uint32_t bucket = unused_.back();
    unused_.pop_back();
    ticks_.push({tick, bucket});
    return bucket;
  }

  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ticks_;
  std::vector<std::vector<Event>> buckets_;
  std::vector<std::uint32_t> unused_;
  std::array<Recent, 64> recent_;
};

}  // namespace pipewright
