// What each user has had of the ranks lately, so that they can be shared fairly. Of a user who has
// r(s) ranks at time s the recent use is, in rank-seconds,
//
//   u(t) = integral of r(s) 2^(-(t - s) / half_life) ds over s < t,
//
// the decayed usage of fair-share schedulers (Kay and Lauder, "A Fair Share Scheduler", CACM 31(1),
// 1988; Slurm's PriorityDecayHalfLife). Ranks in use count as if they were kept for a minute more,
// so that those that are free at one time do not all go to one user:
//
//   load(t) = u(t) + 60 s r(t),
//
// and who has the least goes first. Pure: time is an argument.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>

namespace pipewright::jobs {

class Shares {
 public:
  using Time = std::chrono::milliseconds;  // since any fixed point, never less than before

  explicit Shares(Time half_life) : half_life_(half_life) {}

  void take(const std::string& user, std::size_t ranks, Time now);
  void give_back(const std::string& user, std::size_t ranks, Time now);
  /// In rank-seconds.
  double load(const std::string& user, Time now) const;

 private:
  struct Use {
    double rank_seconds = 0;
    std::size_t ranks = 0;
    Time at{};
  };

  Use at(const std::string& user, Time now) const;
  void forget_the_idle(Time now);

  Time half_life_;
  std::map<std::string, Use> uses_;
};

}  // namespace pipewright::jobs
