// Which ranks of a pool are still there, as rank 0 knows it: from what it hears of them, and of
// those on its own machine from their processes. And whether rank 0 is, as the others know it. Time
// is an argument.
#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "proto/codec/pool.hpp"

namespace pipewright {

class RankWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Milliseconds = std::chrono::milliseconds;

  /// A rank that is not heard for `silence_max` is missing. One that prepares a run may take
  /// `starting_factor` times as long: it reads the run's data, and says nothing meanwhile.
  static constexpr int starting_factor = 10;

  /// `ranks` are all of the world, in order; the first is this process.
  RankWatch(std::vector<RankInfo> ranks, Milliseconds silence_max, Time now);

  void heard(int rank, Time now) { ranks_.at(static_cast<std::size_t>(rank)).heard = now; }
  /// To be called between actions, after everything that has come has been heard. Cheap. `starting`
  /// are the ranks that prepare a run.
  void look(const std::set<std::uint32_t>& starting, Time now);

  /// Ranks that hang, or have died. They never come back.
  const std::set<std::uint32_t>& missing() const { return missing_; }
  /// The rank's process runs on this machine: when it does not answer, it is busy.
  bool is_there(std::uint32_t rank) const;
  /// "rank 3 (host h2, process 4711) has died"; "... has said nothing for 31 s"
  std::string describe(std::uint32_t rank, Time now) const;

 private:
  struct Rank {
    RankInfo info;
    bool is_here = false;  // its process can be seen from here
    Time heard;
    bool has_died = false;
  };

  std::vector<Rank> ranks_;
  Milliseconds silence_max_;
  std::set<std::uint32_t> missing_;
  Time heard_to_, looked_;
};

/// Of a rank that may be cut off from rank 0, and that nobody else would end then.
class CoordinatorWatch {
 public:
  using Time = RankWatch::Time;
  using Milliseconds = RankWatch::Milliseconds;

  /// Rank 0, too, may prepare a run and say nothing meanwhile.
  CoordinatorWatch(Milliseconds silence_max, Time now)
      : patience_(silence_max * RankWatch::starting_factor), heard_(now), looked_(now) {}

  /// From the first time on it is to be heard again and again: without a daemon it never speaks.
  void heard(Time now) {
    speaks_ = true;
    heard_ = now;
  }
  /// To be called between actions, after everything that has come has been heard. Cheap. Throws
  /// Error when rank 0 is silent for too long.
  void look(Time now);

 private:
  Milliseconds patience_;
  bool speaks_ = false;
  Time heard_, looked_;
};

}  // namespace pipewright
