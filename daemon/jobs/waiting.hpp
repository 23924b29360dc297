// The jobs of which runs wait, by what decides when they start: of one user, one priority and one
// number of ranks they start in the order of their ids, so only the first of each kind is looked
// at.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

namespace pipewright::jobs {

struct JobKind {
  std::string user;
  int priority = 0;
  int ranks_wanted = 1;
  friend auto operator<=>(const JobKind&, const JobKind&) = default;
};

class Waiting {
 public:
  using Time = std::chrono::milliseconds;
  struct Jobs {
    std::deque<std::uint32_t> ids;  // ascending, not empty
    Time since{};                   // nothing of this kind has started from then on
  };

  void add(const JobKind& kind, std::uint32_t job, Time now);
  void remove(const JobKind& kind, std::uint32_t job);
  /// A run of this kind has started, which may have been the last that waited.
  void started(const JobKind& kind, Time now);
  const std::map<JobKind, Jobs>& kinds() const { return kinds_; }

 private:
  std::map<JobKind, Jobs> kinds_;
};

}  // namespace pipewright::jobs
