#include "daemon/jobs/queue.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/check.hpp"

namespace pipewright {

namespace jobs {

JobState Queue::JobEntry::state() const {
  if (counts.ended() == counts.total) {
    if (counts.cancelled > 0) return JobState::cancelled;
    return counts.failed > 0 ? JobState::failed : JobState::succeeded;
  }
  if (counts.succeeded + counts.failed + began > 0) return JobState::running;
  return under_way.empty() ? JobState::queued : JobState::starting;
}

Effects Queue::handle(const Input& input, Time now) {
  now_ = now;
  std::visit([this](const auto& event) { on(event); }, input);
  // Before what was lost starts again: that it was lost is to be seen.
  store_changed_jobs();
  // These come often, and change nothing in what could start.
  if (std::holds_alternative<PoolHeard>(input) || std::holds_alternative<RunBegan>(input)) {
    return std::exchange(effects_, {});
  }
  start_what_fits();
  store_changed_jobs();
  return std::exchange(effects_, {});
}

std::optional<JobState> Queue::state_of(JobId job) const {
  const auto at = jobs_.find(job);
  if (at == jobs_.end()) return std::nullopt;
  return at->second.state();
}

bool Queue::runs_on(PoolId pool, RunId run) const {
  const auto at = jobs_.find(run.job);
  if (at == jobs_.end()) return false;
  const auto entry = at->second.under_way.find(run.run);
  return entry != at->second.under_way.end() && entry->second.pool == pool &&
         entry->second.attempt == run.attempt;
}

std::vector<JobId> Queue::rank_jobs(PoolId pool) const {
  std::vector<JobId> jobs;
  const Pool* known = find_pool(pool);
  if (known == nullptr) return jobs;
  for (const LaneId lane : known->rank_lanes) {
    jobs.push_back(lane == no_lane ? 0 : known->lanes.at(lane).job);
  }
  return jobs;
}

void Queue::on(const JobAccepted& event) {
  PW_CHECK(event.runs > 0, "job " << event.job << " without runs");
  JobEntry& job = jobs_[event.job];
  job.kind = {event.user, event.priority, event.ranks_wanted};
  job.counts.total = event.runs;
  job.stored.job = event.job;
  job.stored.counts = job.counts;
  set_waiting(event.job, job);
}

void Queue::on(const JobRestored& event) {
  JobEntry& job = jobs_[event.job];
  job.kind = {event.user, event.priority, event.ranks_wanted};
  job.counts = event.counts;
  job.counts.under_way = 0;
  job.next_run = event.next_run;
  job.attempt = event.attempt;
  job.cancel_asked = event.cancel_asked;
  job.message = event.message;
  job.first_failed = event.first_failed;
  job.stored = {event.job, event.state, event.message, event.attempt, event.counts, event.next_run};
  changed_.insert(event.job);
  for (const RestoredRun& run : event.runs) {
    if (event.cancel_asked) {
      store_run(event.job, run.number, JobState::cancelled, "cancelled while it ran", run.attempt);
      ++job.counts.cancelled;
      continue;
    }
    if (run.pool && limits_.lease.count() > 0) {
      restore_run(event.job, job, run);
      continue;
    }
    job.again[run.number] = {run.attempt, 0};
    if (run.state == JobState::queued) continue;
    store_run(event.job, run.number, JobState::queued,
              "attempt " + std::to_string(run.attempt) + " was lost: the daemon was restarted",
              run.attempt);
  }
  set_waiting(event.job, job);
}

void Queue::on(const CancelAsked& event) {
  const auto at = jobs_.find(event.job);
  if (at == jobs_.end() || at->second.cancel_asked) return;
  JobEntry& job = at->second;
  drop_waiting(event.job, job);
  job.cancel_asked = true;
  set_waiting(event.job, job);
  changed_.insert(event.job);
  if (job.under_way.empty()) return;
  effects_.push_back(StoreCancelAsked{event.job});
  for (const auto& [number, run] : job.under_way) {
    effects_.push_back(CancelOnPool{run.pool, {event.job, number, run.attempt}});
  }
}

/// Those that have never been started have nothing that would have to be changed.
void Queue::drop_waiting(JobId id, JobEntry& job) {
  for (const auto& [number, run] : job.again) {
    store_run(id, number, JobState::cancelled, "cancelled while it waited to run again",
              run.attempt);
  }
  if (job.one() && job.again.empty() && job.next_run == 0) {
    job.message = "cancelled before it began";
  }
  job.counts.cancelled += job.counts.total - job.next_run;
  job.counts.cancelled += static_cast<std::uint32_t>(job.again.size());
  job.again.clear();
}

void Queue::on(const RunBegan& event) {
  if (!runs_on(event.pool, event.run)) return;
  JobEntry& job = jobs_.at(event.run.job);
  RunEntry& run = job.under_way.at(event.run.run);
  if (std::exchange(run.began, true)) return;
  ++job.began;
  store_run(event.run.job, event.run.run, JobState::running, {}, run.attempt);
}

void Queue::on(const RunAdvanced& event) {
  if (!runs_on(event.pool, event.run)) return;
  jobs_.at(event.run.job).under_way.at(event.run.run).losses = 0;
}

void Queue::on(const RunOver& event) {
  if (runs_on(event.pool, event.run)) {
    const auto [id, number, attempt] = event.run;
    switch (event.outcome) {
      case RunOutcome::succeeded:
        end_run(id, number, JobState::succeeded, event.message, event.summary_json);
        break;
      case RunOutcome::failed:
        end_run(id, number, JobState::failed, event.message);
        break;
      case RunOutcome::cancelled:
        end_run(id, number, JobState::cancelled, event.message);
        break;
      case RunOutcome::lost:
        return_run(id, number, Return::lost, event.message);
        break;
    }
  }
  // A run that is no longer known is acknowledged too, so that the pool forgets it.
  if (pools_.contains(event.pool)) effects_.push_back(AcknowledgeEnd{event.pool, event.run});
}

/// Starts the job's next run on free ranks, or gives it to ranks that have one; false when there
/// are neither outside of the pools that are kept for others.
bool Queue::start_next(JobId id, JobEntry& job, const Pools& kept) {
  auto [pool_id, lane_id] = open_lane(id, job, kept);
  if (lane_id == no_lane) std::tie(pool_id, lane_id) = lane_with_room(id, job, kept);
  if (lane_id == no_lane) return false;
  std::uint32_t number = job.next_run;
  Again before;
  if (const auto first = job.again.begin(); first != job.again.end()) {
    std::tie(number, before) = *first;
    job.again.erase(first);
  } else {
    ++job.next_run;
  }
  const std::uint32_t attempt = before.attempt + 1;
  job.attempt = std::max(job.attempt, attempt);
  job.under_way[number] = {false, attempt, before.losses, pool_id, lane_id};
  Lane& lane = pools_.at(pool_id).lanes.at(lane_id);
  lane.runs.push_back(number);
  store_run(id, number, JobState::starting, {}, attempt);
  std::get<StoreRun>(effects_.back()).pool = pool_id;
  std::get<StoreRun>(effects_.back()).ranks = lane.ranks;
  effects_.push_back(StartOnPool{pool_id, {id, number, attempt}, lane.ranks});
  job.passed_since.reset();
  set_waiting(id, job);
  waiting_.started(job.kind, now_);
  return true;
}

/// Free ranks of a pool that has enough: the one that has the fewest left then, the oldest of
/// equals.
std::pair<PoolId, Queue::LaneId> Queue::open_lane(JobId id, const JobEntry& job,
                                                  const Pools& kept) {
  const std::size_t ranks = ranks_for(job);
  Pool* best = nullptr;
  PoolId best_id;
  for (auto& [pool_id, pool] : pools_) {
    if (pool.free < ranks || kept.contains(pool_id)) continue;
    if (best != nullptr && pool.free >= best->free) continue;
    best = &pool;
    best_id = pool_id;
  }
  if (best == nullptr) return {best_id, no_lane};
  Lane& lane = best->lanes[++last_lane_];
  lane.job = id;
  lane.front_since = now_;
  for (std::uint32_t rank = 0; lane.ranks.size() < ranks; ++rank) {
    if (best->rank_lanes[rank] != no_lane) continue;
    best->rank_lanes[rank] = last_lane_;
    lane.ranks.push_back(rank);
  }
  best->free -= ranks;
  shares_.take(job.kind.user, ranks, now_);
  return {best_id, last_lane_};
}

/// How many runs ranks may have: the one under way, and short ones in advance.
std::size_t Queue::lane_runs_max(const JobEntry& job) const {
  if (job.run_ms_count == 0) return 1;
  const double ahead =
      static_cast<double>(limits_.ahead_time.count()) / std::max(1.0, job.run_ms_mean);
  return 1 + std::min(limits_.ahead_max, static_cast<std::size_t>(ahead));
}

/// Of the ranks that run this job, those with the least to do that may be given more.
std::pair<PoolId, Queue::LaneId> Queue::lane_with_room(JobId id, const JobEntry& job,
                                                       const Pools& kept) {
  std::size_t runs = lane_runs_max(job);
  std::pair<PoolId, LaneId> best{PoolId{}, no_lane};
  if (runs == 1) return best;
  for (auto& [pool_id, pool] : pools_) {
    if (kept.contains(pool_id)) continue;
    for (auto& [lane_id, lane] : pool.lanes) {
      if (lane.job != id || lane.runs.size() >= runs) continue;
      runs = lane.runs.size();
      best = {pool_id, lane_id};
    }
  }
  return best;
}

/// Takes a run that is under way off its ranks, which are free after their last. Gives how long it
/// was the first of them.
Queue::Time Queue::leave_lane(JobEntry& job, std::uint32_t number) {
  const RunEntry run = job.under_way.extract(number).mapped();
  if (run.began) --job.began;
  Pool* pool = find_pool(run.pool);
  if (pool == nullptr) return {};
  const auto at = pool->lanes.find(run.lane);
  Lane& lane = at->second;
  lane.runs.erase(std::find(lane.runs.begin(), lane.runs.end(), number));
  const Time took = now_ - std::exchange(lane.front_since, now_);
  if (!lane.runs.empty()) return took;
  for (const std::uint32_t rank : lane.ranks) {
    if (rank >= pool->rank_lanes.size() || pool->rank_lanes[rank] != run.lane) continue;
    pool->rank_lanes[rank] = no_lane;
    ++pool->free;
  }
  shares_.give_back(job.kind.user, lane.ranks.size(), now_);
  pool->lanes.erase(at);
  return took;
}

/// Of a run that has not begun the attempt is as good as new. One that was given back keeps its
/// number, but is no loss: that a pool's time is over, or its Slurm job is queued again, tells
/// nothing about the run, so however often it happens it does not count against attempts_max.
void Queue::return_run(JobId id, std::uint32_t number, Return how, const std::string& reason) {
  JobEntry& job = jobs_.at(id);
  const RunEntry& run = job.under_way.at(number);
  const std::string name = "attempt " + std::to_string(run.attempt);
  const std::string what = how == Return::given_back ? " was given back: " : " was lost: ";
  if (job.cancel_asked) {
    end_run(id, number, JobState::cancelled, "cancelled; its run" + what + reason);
    return;
  }
  Again again{run.attempt, run.losses};
  if (how == Return::lost) ++again.losses;
  if (how == Return::not_begun) --again.attempt;
  if (starting_allowed_ && again.losses >= limits_.attempts_max) {
    end_run(id, number, JobState::failed, name + ", the last one," + what + reason);
    return;
  }
  leave_lane(job, number);
  job.again[number] = again;
  set_waiting(id, job);
  store_run(id, number, JobState::queued,
            how == Return::not_begun ? "lost before it began: " + reason : name + what + reason,
            again.attempt);
}

void Queue::end_run(JobId id, std::uint32_t number, JobState state, std::string message,
                    std::string summary_json) {
  JobEntry& job = jobs_.at(id);
  const std::uint32_t attempt = job.under_way.at(number).attempt;
  const auto took_ms = static_cast<double>(leave_lane(job, number).count());
  if (state != JobState::cancelled) {
    job.run_ms_count = std::min<std::uint32_t>(job.run_ms_count + 1, 16);
    job.run_ms_mean += (took_ms - job.run_ms_mean) / job.run_ms_count;
  }
  RunCounts& counts = job.counts;
  ++(state == JobState::succeeded ? counts.succeeded
     : state == JobState::failed  ? counts.failed
                                  : counts.cancelled);
  if (state == JobState::failed && (!job.first_failed || number < job.first_failed->number)) {
    job.first_failed = FailedRun{number, message};
  }
  store_run(id, number, state, std::move(message), attempt);
  std::get<StoreRun>(effects_.back()).summary_json = std::move(summary_json);
}

void Queue::store_run(JobId id, std::uint32_t number, JobState state, std::string message,
                      std::uint32_t attempt) {
  if (JobEntry& job = jobs_.at(id); job.one()) job.message = message;
  changed_.insert(id);
  effects_.push_back(StoreRun{.job = id,
                              .run = number,
                              .state = state,
                              .message = std::move(message),
                              .attempt = attempt,
                              .pool = {},
                              .ranks = {},
                              .summary_json = {}});
}

/// What the end of many runs has to say.
void Queue::set_final_message(JobEntry& job) const {
  const RunCounts& counts = job.counts;
  const std::string of_all = " of " + std::to_string(counts.total) + " runs ";
  if (counts.cancelled > 0) {
    job.message =
        "cancelled; " + std::to_string(counts.total - counts.cancelled) + of_all + "had ended";
  } else if (counts.failed > 0) {
    job.message = std::to_string(counts.failed) + of_all + "failed";
    if (job.first_failed) {
      job.message +=
          "; run " + std::to_string(job.first_failed->number) + ": " + job.first_failed->message;
    }
  }
}

void Queue::store_changed_jobs() {
  for (const JobId id : std::exchange(changed_, {})) {
    const auto at = jobs_.find(id);
    JobEntry& job = at->second;
    job.counts.under_way = static_cast<std::uint32_t>(job.under_way.size());
    const JobState state = job.state();
    if (is_final(state) && !job.one()) set_final_message(job);
    StoreJob store{id, state, job.message, job.attempt, job.counts, job.next_run};
    if (store != job.stored) {
      job.stored = store;
      effects_.push_back(std::move(store));
    }
    if (!is_final(state)) continue;
    jobs_.erase(at);
  }
}

}  // namespace jobs
}  // namespace pipewright
