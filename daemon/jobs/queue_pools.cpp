// Pools that come, go and come back.
#include <algorithm>
#include <utility>

#include "daemon/jobs/queue.hpp"

namespace pipewright {

namespace jobs {

/// It is under way, on a pool that may come back.
void Queue::restore_run(JobId id, JobEntry& job, const RestoredRun& run) {
  const bool began = run.state == JobState::running;
  Pool& pool = away_[*run.pool];
  pool.heard = now_;
  pool.keeps_runs = true;
  pool.reason = "the daemon was restarted";
  auto lane = std::find_if(pool.lanes.begin(), pool.lanes.end(), [&](const auto& other) {
    return other.second.job == id && other.second.ranks == run.ranks;
  });
  if (lane == pool.lanes.end()) {
    lane = pool.lanes.emplace(++last_lane_, Lane{id, run.ranks, {}, now_}).first;
    shares_.take(job.kind.user, run.ranks.size(), now_);
  }
  std::deque<std::uint32_t>& runs = lane->second.runs;
  runs.insert(began ? runs.begin() : runs.end(), run.number);
  job.under_way[run.number] = {began, run.attempt, 0, *run.pool, lane->first};
  if (began) ++job.began;
}

/// A new pool, or one that comes back with its runs.
void Queue::on(const PoolAttached& event) {
  auto away = away_.extract(event.pool);
  Pool& pool = pools_[event.pool] = away.empty() ? Pool() : std::move(away.mapped());
  pool.heard = now_;
  pool.keeps_runs = event.keeps_runs;
  pool.rank_lanes.assign(event.ranks, no_lane);
  pool.free = event.ranks;
  std::set<RunId> kept(event.runs.begin(), event.runs.end());
  std::vector<RunId> missing;
  for (const auto& [lane_id, lane] : pool.lanes) {
    const bool fits = give_ranks(pool, lane_id, lane);
    JobEntry& job = jobs_.at(lane.job);
    for (const std::uint32_t number : lane.runs) {
      const RunId run{lane.job, number, job.under_way.at(number).attempt};
      if (kept.contains(run) && fits) {
        kept.erase(run);
        if (job.cancel_asked) effects_.push_back(CancelOnPool{event.pool, run});
      } else {
        missing.push_back(run);  // what it was told last, and has not heard
      }
    }
  }
  // Others have these by now, or they are over.
  for (const RunId& run : kept) effects_.push_back(CancelOnPool{event.pool, run});
  const std::string reason = pool.reason;
  for (const RunId& run : missing) {
    return_run(run.job, run.run, Return::given_back, reason + "; its pool came back without it");
  }
}

/// False when they are not all there and free: that is another pool than the one that left.
bool Queue::give_ranks(Pool& pool, LaneId id, const Lane& lane) {
  const bool fits = std::all_of(lane.ranks.begin(), lane.ranks.end(), [&](std::uint32_t rank) {
    return rank < pool.rank_lanes.size() && pool.rank_lanes[rank] == no_lane;
  });
  if (!fits) return false;
  for (const std::uint32_t rank : lane.ranks) pool.rank_lanes[rank] = id;
  pool.free -= lane.ranks.size();
  return true;
}

void Queue::on(const PoolHeard& event) {
  const auto at = pools_.find(event.pool);
  if (at != pools_.end()) at->second.heard = now_;
}

void Queue::on(const PoolCut& event) {
  cut(event.pool, event.reason);
}

void Queue::cut(PoolId id, const std::string& reason) {
  const auto at = pools_.find(id);
  if (at == pools_.end()) return;
  const bool waits = at->second.keeps_runs && !at->second.lanes.empty();
  if (!waits || !starting_allowed_ || limits_.lease.count() == 0) {
    return remove_pool(id, Return::lost, reason);
  }
  Pool& pool = away_[id] = std::move(pools_.extract(at).mapped());
  pool.heard = now_;
  pool.reason = reason;
}

Queue::Pool* Queue::find_pool(PoolId id) {
  return const_cast<Pool*>(std::as_const(*this).find_pool(id));
}

const Queue::Pool* Queue::find_pool(PoolId id) const {
  if (const auto at = pools_.find(id); at != pools_.end()) return &at->second;
  const auto at = away_.find(id);
  return at == away_.end() ? nullptr : &at->second;
}

void Queue::on(const PoolLost& event) {
  remove_pool(event.pool, Return::lost, event.reason);
}

/// Or it will not come back.
void Queue::on(const PoolLeft& event) {
  remove_pool(event.pool, Return::given_back, event.reason, event.lost);
}

void Queue::on(const TimePassed&) {
  // When this process itself stood still (a slow disk, a stopped machine), what the pools sent
  // meanwhile may be unread: they get that time on top.
  const Time gap = now_ - std::exchange(checked_, now_).value_or(now_);
  if (gap > limits_.heartbeat_interval) {
    for (auto& [id, pool] : pools_) pool.heard = std::min(now_, pool.heard + gap);
    for (auto& [id, pool] : away_) pool.heard = std::min(now_, pool.heard + gap);
  }
  std::erase_if(gone_, [this](const GonePool& pool) { return pool.until <= now_; });
  const Time silence_max = limits_.heartbeat_interval * limits_.heartbeats_missed_max;
  for (const PoolId id : silent_for(pools_, silence_max)) {
    const std::string reason =
        "the pool was silent for more than " + std::to_string(silence_max.count()) + " ms";
    effects_.push_back(DropPool{id, reason});
    cut(id, reason);
  }
  for (const PoolId id : silent_for(away_, limits_.lease)) {
    remove_pool(
        id, Return::given_back,
        "its pool did not come back within " + std::to_string(limits_.lease.count()) + " ms");
  }
}

std::vector<PoolId> Queue::silent_for(const std::map<PoolId, Pool>& pools, Time time) const {
  std::vector<PoolId> silent;
  for (const auto& [id, pool] : pools) {
    if (now_ - pool.heard > time) silent.push_back(id);
  }
  return silent;
}

void Queue::remove_pool(PoolId id, Return how, std::string reason,
                        const std::vector<LostRun>& lost) {
  const bool was_away = away_.contains(id);
  const auto gone = was_away ? away_.extract(id) : pools_.extract(id);
  if (gone.empty()) return;
  const Pool& pool = gone.mapped();
  if (was_away) reason = pool.reason + "; " + reason;
  if (!was_away && (how == Return::lost || !lost.empty())) {
    gone_.push_back({pool.rank_lanes.size(), now_ + limits_.pool_return});
  }
  // A run that was not the first of its ranks has not begun, so nothing is lost. Where it may still
  // come to life, in a pool that has not said to leave, its attempt is not used again.
  const bool may_live = was_away || (pool.keeps_runs && how == Return::lost);
  const Return behind = may_live ? Return::given_back : Return::not_begun;
  // In the order of jobs and runs, whichever ranks had them.
  std::map<std::pair<JobId, std::uint32_t>, Return> returned;
  for (const auto& [lane_id, lane] : pool.lanes) {
    shares_.give_back(jobs_.at(lane.job).kind.user, lane.ranks.size(), now_);
    for (const std::uint32_t run : lane.runs) {
      returned[{lane.job, run}] = run == lane.runs.front() ? how : behind;
    }
  }
  for (const auto& [run, how_it] : returned) {
    const RunId run_id{run.first, run.second, jobs_.at(run.first).under_way.at(run.second).attempt};
    const auto named = std::find_if(lost.begin(), lost.end(),
                                    [&](const LostRun& one) { return one.run == run_id; });
    if (named == lost.end()) {
      return_run(run.first, run.second, how_it, reason);
    } else {
      return_run(run.first, run.second, Return::lost, named->message);
    }
  }
}

}  // namespace jobs
}  // namespace pipewright
