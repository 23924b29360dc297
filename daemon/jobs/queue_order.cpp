// Which job is next, and which ranks it gets: docs/scheduling.md has the rule.
#include <algorithm>

#include "daemon/jobs/queue.hpp"

namespace pipewright {

namespace jobs {

void Queue::set_waiting(JobId id, JobEntry& job) {
  if (job.waits() == job.is_waiting) return;
  job.is_waiting = !job.is_waiting;
  if (job.is_waiting) {
    waiting_.add(job.kind, id, now_);
  } else {
    waiting_.remove(job.kind, id);
  }
}

/// But for that it may starve.
Queue::Place Queue::place_of(const JobKind& kind, JobId id) const {
  return {Time::max(), -kind.priority, shares_.load(kind.user, now_), id};
}

/// The first jobs of all kinds, as they are to start.
std::vector<Queue::Place> Queue::order() const {
  std::vector<Place> places;
  for (const auto& [kind, jobs] : waiting_.kinds()) {
    places.push_back(place_of(kind, jobs.ids.front()));
    if (now_ - jobs.since >= limits_.starving_after) places.back().starving_since = jobs.since;
  }
  std::sort(places.begin(), places.end());
  return places;
}

void Queue::start_what_fits() {
  while (starting_allowed_ && !pools_.empty() && start_one()) {
  }
}

/// After every start the order is another: it has added to a user's share.
bool Queue::start_one() {
  Pools kept;
  std::vector<JobId> blocked;
  for (const Place& place : order()) {
    JobEntry& job = jobs_.at(place.job);
    if (start_next(place.job, job, kept)) {
      passed_by(blocked, std::get<StartOnPool>(effects_.back()).pool);
      return true;
    }
    blocked.push_back(place.job);
    if (!job.passed_since || now_ - *job.passed_since < limits_.passing_max) continue;
    if (const std::optional<PoolId> pool = pool_to_keep(job, kept)) kept.insert(*pool);
  }
  return false;
}

/// A run has started on a pool whose ranks these could have used.
void Queue::passed_by(const std::vector<JobId>& blocked, PoolId pool) {
  for (const JobId id : blocked) {
    JobEntry& job = jobs_.at(id);
    if (job.passed_since || pools_.at(pool).rank_lanes.size() < ranks_for(job)) continue;
    job.passed_since = now_;
  }
}

/// The pool that needs the fewest further ranks for it; what is started from now on leaves it
/// alone, so it stays that pool until another one needs even fewer.
std::optional<PoolId> Queue::pool_to_keep(const JobEntry& job, const Pools& kept) const {
  const std::size_t ranks = ranks_for(job);
  std::optional<PoolId> best;
  for (const auto& [id, pool] : pools_) {
    if (pool.rank_lanes.size() < ranks || kept.contains(id)) continue;
    if (!best || pool.free > pools_.at(*best).free) best = id;
  }
  return best;
}

/// What it wants or, when that is more than any pool has, all ranks of the largest.
std::size_t Queue::ranks_for(const JobEntry& job) const {
  std::size_t largest = 0;
  for (const auto& [id, pool] : pools_) largest = std::max(largest, pool.rank_lanes.size());
  for (const auto& [id, pool] : away_) largest = std::max(largest, pool.rank_lanes.size());
  for (const GonePool& pool : gone_) largest = std::max(largest, pool.ranks);
  return std::min(largest, static_cast<std::size_t>(job.kind.ranks_wanted));
}

std::string Queue::why_waits(JobId id) const {
  const auto at = jobs_.find(id);
  if (at == jobs_.end() || !at->second.is_waiting) return {};
  if (pools_.empty()) return "waits for a pool; none is attached";
  const JobEntry& job = at->second;
  const std::size_t ranks = ranks_for(job);
  std::size_t free = 0;
  for (const auto& [pool_id, pool] : pools_) {
    if (pool.rank_lanes.size() >= ranks) free = std::max(free, pool.free);
  }
  const Place here = place_of(job.kind, id);
  std::size_t before = 0;
  for (const auto& [kind, jobs] : waiting_.kinds()) {
    if (kind.user == job.kind.user && kind.priority == job.kind.priority) {
      const auto end = std::lower_bound(jobs.ids.begin(), jobs.ids.end(), id);
      before += static_cast<std::size_t>(end - jobs.ids.begin());
    } else if (place_of(kind, jobs.ids.front()) < here) {
      before += jobs.ids.size();
    }
  }
  const auto count = [](std::size_t number, const std::string& what) {
    return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
  };
  std::string text = "waits for " + count(ranks, "rank") + "; " + std::to_string(free) + " free";
  if (before > 0) text += "; " + count(before, "job") + " before it";
  return text;
}

}  // namespace jobs
}  // namespace pipewright
