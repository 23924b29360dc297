#include "daemon/jobs/queue.hpp"

#include <algorithm>
#include <utility>

namespace pipewright {

namespace jobs {

Effects Queue::handle(const Input& input, Time now) {
  now_ = now;
  std::visit([this](const auto& event) { on(event); }, input);
  start_what_fits();
  return std::exchange(effects_, {});
}

std::optional<JobState> Queue::state_of(JobId job) const {
  const auto at = jobs_.find(job);
  if (at == jobs_.end()) return std::nullopt;
  return at->second.state;
}

bool Queue::runs_on(PoolId pool, RunId run) const {
  const auto at = jobs_.find(run.job);
  return at != jobs_.end() && at->second.state != JobState::queued && at->second.pool == pool &&
         at->second.attempt == run.attempt;
}

std::vector<JobId> Queue::rank_jobs(PoolId pool) const {
  const auto at = pools_.find(pool);
  return at == pools_.end() ? std::vector<JobId>{} : at->second.rank_jobs;
}

void Queue::on(const JobAccepted& event) {
  jobs_[event.job].ranks_wanted = event.ranks_wanted;
  waiting_.insert(event.job);
}

void Queue::on(const JobRestored& event) {
  const auto at = jobs_.emplace(event.job, JobEntry{}).first;
  JobEntry& job = at->second;
  job.ranks_wanted = event.ranks_wanted;
  job.attempt = event.attempt;
  if (event.cancel_asked) {
    end(at, JobState::cancelled, "cancelled while it ran");
  } else if (event.state == JobState::queued) {
    waiting_.insert(event.job);
  } else {
    requeue(event.job, job,
            "attempt " + std::to_string(event.attempt) + " was lost: the daemon was restarted");
  }
}

void Queue::on(const CancelAsked& event) {
  const auto at = jobs_.find(event.job);
  if (at == jobs_.end() || at->second.cancel_asked) return;
  JobEntry& job = at->second;
  if (job.state == JobState::queued) {
    end(at, JobState::cancelled,
        job.attempt == 0 ? "cancelled before it began" : "cancelled while it waited to run again");
    return;
  }
  job.cancel_asked = true;
  effects_.push_back(StoreCancelAsked{event.job});
  effects_.push_back(CancelOnPool{job.pool, {event.job, job.attempt}});
}

void Queue::on(const PoolAttached& event) {
  pools_[event.pool] = {std::vector<JobId>(event.ranks, 0), now_};
}

void Queue::on(const PoolHeard& event) {
  const auto at = pools_.find(event.pool);
  if (at != pools_.end()) at->second.heard = now_;
}

void Queue::on(const PoolLost& event) {
  lose_pool(event.pool, event.reason);
}

void Queue::on(const RunBegan& event) {
  if (!runs_on(event.pool, event.run)) return;
  JobEntry& job = jobs_.at(event.run.job);
  if (job.state != JobState::starting) return;
  job.state = JobState::running;
  effects_.push_back(StoreState{.job = event.run.job,
                                .state = JobState::running,
                                .message = {},
                                .attempt = job.attempt,
                                .pool = {},
                                .ranks = {},
                                .summary_json = {}});
}

void Queue::on(const RunOver& event) {
  if (runs_on(event.pool, event.run)) {
    const auto at = jobs_.find(event.run.job);
    free_ranks(at->second);
    switch (event.outcome) {
      case RunOutcome::succeeded:
        end(at, JobState::succeeded, event.message, event.summary_json);
        break;
      case RunOutcome::failed:
        end(at, JobState::failed, event.message);
        break;
      case RunOutcome::cancelled:
        end(at, JobState::cancelled, event.message);
        break;
      case RunOutcome::lost:
        run_lost(at, event.message);
        break;
    }
  }
  // A run that is no longer known is acknowledged too, so that the pool forgets it.
  if (pools_.contains(event.pool)) effects_.push_back(AcknowledgeEnd{event.pool, event.run});
}

void Queue::on(const TimePassed&) {
  // When this process itself stood still (a slow disk, a stopped machine), what the pools sent
  // meanwhile may be unread: they get that time on top.
  const Time gap = now_ - std::exchange(checked_, now_).value_or(now_);
  if (gap > limits_.heartbeat_interval) {
    for (auto& [id, pool] : pools_) pool.heard = std::min(now_, pool.heard + gap);
  }
  const Time silence_max = limits_.heartbeat_interval * limits_.heartbeats_missed_max;
  std::vector<PoolId> silent;
  for (const auto& [id, pool] : pools_) {
    if (now_ - pool.heard > silence_max) silent.push_back(id);
  }
  for (const PoolId pool : silent) {
    const std::string reason =
        "the pool was silent for more than " + std::to_string(silence_max.count()) + " ms";
    effects_.push_back(DropPool{pool, reason});
    lose_pool(pool, reason);
  }
}

void Queue::start_what_fits() {
  while (starting_allowed_ && !waiting_.empty()) {
    const JobId head = *waiting_.begin();
    if (!start(head, jobs_.at(head))) return;
    waiting_.erase(head);
  }
}

/// Starts the job on the pool that gives it most of the ranks that it wants (the oldest of equals).
bool Queue::start(JobId id, JobEntry& job) {
  Pool* best = nullptr;
  PoolId best_id;
  std::size_t best_ranks = 0;
  for (auto& [pool_id, pool] : pools_) {
    const std::size_t wanted =
        std::min<std::size_t>(pool.rank_jobs.size(), static_cast<std::size_t>(job.ranks_wanted));
    const auto free = std::count(pool.rank_jobs.begin(), pool.rank_jobs.end(), JobId{0});
    if (static_cast<std::size_t>(free) >= wanted && wanted > best_ranks) {
      best = &pool;
      best_id = pool_id;
      best_ranks = wanted;
    }
  }
  if (best == nullptr) return false;
  job.pool = best_id;
  job.ranks.clear();
  for (std::uint32_t rank = 0; job.ranks.size() < best_ranks; ++rank) {
    if (best->rank_jobs[rank] != 0) continue;
    best->rank_jobs[rank] = id;
    job.ranks.push_back(rank);
  }
  ++job.attempt;
  job.state = JobState::starting;
  effects_.push_back(StoreState{.job = id,
                                .state = JobState::starting,
                                .message = {},
                                .attempt = job.attempt,
                                .pool = best_id,
                                .ranks = job.ranks,
                                .summary_json = {}});
  effects_.push_back(StartOnPool{best_id, {id, job.attempt}, job.ranks});
  return true;
}

void Queue::lose_pool(PoolId pool, const std::string& reason) {
  const auto gone = pools_.extract(pool);
  if (gone.empty()) return;
  const std::set<JobId> lost(gone.mapped().rank_jobs.begin(), gone.mapped().rank_jobs.end());
  for (const JobId id : lost) {
    if (id != 0) run_lost(jobs_.find(id), reason);
  }
}

void Queue::run_lost(Jobs::iterator at, const std::string& reason) {
  auto& [id, job] = *at;
  const std::string attempt = std::to_string(job.attempt);
  if (job.cancel_asked) {
    end(at, JobState::cancelled, "cancelled; its run was lost: " + reason);
  } else if (starting_allowed_ && job.attempt >= limits_.attempts_max) {
    end(at, JobState::failed, "attempt " + attempt + ", the last one, was lost: " + reason);
  } else {
    requeue(id, job, "attempt " + attempt + " was lost: " + reason);
  }
}

void Queue::free_ranks(const JobEntry& job) {
  const auto pool = pools_.find(job.pool);
  if (pool == pools_.end()) return;
  for (const std::uint32_t rank : job.ranks) pool->second.rank_jobs[rank] = 0;
}

void Queue::end(Jobs::iterator at, JobState state, std::string message, std::string summary_json) {
  effects_.push_back(StoreState{.job = at->first,
                                .state = state,
                                .message = std::move(message),
                                .attempt = at->second.attempt,
                                .pool = {},
                                .ranks = {},
                                .summary_json = std::move(summary_json)});
  waiting_.erase(at->first);
  jobs_.erase(at);
}

void Queue::requeue(JobId id, JobEntry& job, std::string message) {
  job.state = JobState::queued;
  job.ranks.clear();
  waiting_.insert(id);
  effects_.push_back(StoreState{.job = id,
                                .state = JobState::queued,
                                .message = std::move(message),
                                .attempt = job.attempt,
                                .pool = {},
                                .ranks = {},
                                .summary_json = {}});
}

}  // namespace jobs
}  // namespace pipewright
