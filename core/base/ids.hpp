// Strong types for the words of DESIGN.md section 1. A value of one of them cannot stand for
// another;
// `.value` gives the number. All count from 0.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <ostream>

namespace pipewright {

template <class Tag, class Rep>
struct StrongId {
  Rep value{};

  constexpr StrongId() = default;
  constexpr explicit StrongId(Rep v) : value(v) {}
  friend constexpr auto operator<=>(const StrongId&, const StrongId&) = default;
  constexpr StrongId& operator++() {
    ++value;
    return *this;
  }
  friend std::ostream& operator<<(std::ostream& out, StrongId id) { return out << +id.value; }
};

using Stage = StrongId<struct StageTag, std::int32_t>;            // position in the pipeline
using Replica = StrongId<struct ReplicaTag, std::int32_t>;        // LocalSGD copy of the model
using Row = StrongId<struct RowTag, std::int32_t>;                // one line of a plan: a stage, or
                                                                  // a (replica, stage) if spread
using Microbatch = StrongId<struct MicrobatchTag, std::int64_t>;  // one batch on its way
using Batch = StrongId<struct BatchTag, std::int64_t>;            // which rows of the data
using UpdateCount = StrongId<struct UpdateTag, std::int64_t>;     // the global counter k
using WeightVersion = StrongId<struct VersionTag, std::int64_t>;  // updates that a block has had

/// Schedule time. One tick is 1 ns when a job gives durations, else an abstract unit.
struct Tick {
  std::int64_t value{};

  constexpr Tick() = default;
  constexpr explicit Tick(std::int64_t v) : value(v) {}
  friend constexpr auto operator<=>(const Tick&, const Tick&) = default;
  friend constexpr Tick operator+(Tick a, Tick b) { return Tick(a.value + b.value); }
  friend constexpr Tick operator-(Tick a, Tick b) { return Tick(a.value - b.value); }
  constexpr Tick& operator+=(Tick b) {
    value += b.value;
    return *this;
  }
  friend std::ostream& operator<<(std::ostream& out, Tick t) { return out << t.value; }
};

}  // namespace pipewright

template <class Tag, class Rep>
struct std::hash<pipewright::StrongId<Tag, Rep>> {
  std::size_t operator()(pipewright::StrongId<Tag, Rep> id) const noexcept {
    return std::hash<Rep>{}(id.value);
  }
};
