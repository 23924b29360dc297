// Which run of which job goes where and when, as a state machine without I/O: what happens goes in,
// what is to be done comes out, in order. Time is an argument. It holds only jobs that have not
// ended, and of their runs only those that are under way or wait to run again: those that have
// never been started are a range of numbers.
//
// Which job is next (docs/scheduling.md): the one that has starved, if any; then by priority, by
// what its user has had of the ranks lately (shares.hpp), by id. The runs of a job start in the
// order of their numbers, on as many ranks as it wants or, where no pool has so many, on all of the
// largest. A run that does not fit is passed by others that do, but not for long: then ranks are
// kept for it.
//
// Runs are side by side on disjoint ranks. When the runs of a job are short, further ones are given
// to ranks that still have one, so that no rank waits for the next. A run that is lost is queued
// again, until it has been lost `attempts_max` times without having stored a checkpoint in between;
// a restart of the daemon, or a pool that leaves in order and gives it back, does not count as its
// fault, so neither ever fails one.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "core/base/ids.hpp"
#include "daemon/jobs/shares.hpp"
#include "daemon/jobs/waiting.hpp"
#include "proto/codec/api.hpp"
#include "proto/codec/pool.hpp"

namespace pipewright {

using JobId = std::uint32_t;
/// One stay of a pool: it keeps it when it comes back with its runs within the lease.
using PoolId = StrongId<struct PoolTag, std::uint32_t>;

namespace jobs {

// What happens.
struct JobAccepted {
  JobId job = 0;
  int ranks_wanted = 1;  // by each of its runs
  std::uint32_t runs = 1;
  std::string user = {};  // whose job it is
  int priority = 0;       // the greater first
};
/// A run that had been started at least once and had not ended.
struct RestoredRun {
  std::uint32_t number = 0;
  JobState state = JobState::queued;
  std::uint32_t attempt = 0;
  // Of a run that was under way: its pool may come back with it. Otherwise it is run again.
  std::optional<PoolId> pool = {};
  std::vector<std::uint32_t> ranks = {};
};
struct FailedRun {
  std::uint32_t number = 0;
  std::string message;
};
/// A job that had not ended when the daemon did, in the order of ids.
struct JobRestored {
  JobId job = 0;
  int ranks_wanted = 1;
  JobState state = JobState::queued;
  std::string message;
  std::uint32_t attempt = 0;
  RunCounts counts;
  std::uint32_t next_run = 0;  // those from here on have never been started
  std::vector<RestoredRun> runs;
  std::optional<FailedRun> first_failed;
  bool cancel_asked = false;
  std::string user;
  int priority = 0;
};
struct CancelAsked {
  JobId job = 0;
};
struct PoolAttached {
  PoolId pool;
  std::uint32_t ranks = 1;
  bool keeps_runs = false;       // when its connection is cut
  std::vector<RunId> runs = {};  // that it has kept
};
/// Its connection is gone: when it keeps its runs, it has the lease to come back with them.
struct PoolCut {
  PoolId pool;
  std::string reason;
};
struct PoolHeard {
  PoolId pool;
};
struct PoolLost {
  PoolId pool;
  std::string reason;
};
/// It has said so itself: it gives back the runs that it has, but for those that it has lost.
struct PoolLeft {
  PoolId pool;
  std::string reason;
  std::vector<LostRun> lost = {};
};
struct RunBegan {
  PoolId pool;
  RunId run;
};
/// A checkpoint of it has been stored: what it loses from now on it loses only once.
struct RunAdvanced {
  PoolId pool;
  RunId run;
};
struct RunOver {
  PoolId pool;
  RunId run;
  RunOutcome outcome = RunOutcome::succeeded;
  std::string message;
  std::string summary_json;
};
struct TimePassed {};
using Input = std::variant<JobAccepted, JobRestored, CancelAsked, PoolAttached, PoolHeard, PoolCut,
                           PoolLost, PoolLeft, RunBegan, RunAdvanced, RunOver, TimePassed>;

// What is to be done.
struct StoreJob {
  JobId job = 0;
  JobState state = JobState::queued;
  std::string message;
  std::uint32_t attempt = 0;  // the most of any of its runs
  RunCounts counts;
  std::uint32_t next_run = 0;
  friend bool operator==(const StoreJob&, const StoreJob&) = default;
};
struct StoreRun {
  JobId job = 0;
  std::uint32_t run = 0;
  JobState state = JobState::queued;
  std::string message;
  std::uint32_t attempt = 0;
  std::optional<PoolId> pool;        // of STARTING
  std::vector<std::uint32_t> ranks;  // of STARTING
  std::string summary_json;          // of SUCCEEDED
  friend bool operator==(const StoreRun&, const StoreRun&) = default;
};
/// The job is to end as soon as its pools answer; remembered over a restart of the daemon.
struct StoreCancelAsked {
  JobId job = 0;
  friend bool operator==(const StoreCancelAsked&, const StoreCancelAsked&) = default;
};
struct StartOnPool {
  PoolId pool;
  RunId run;
  std::vector<std::uint32_t> ranks;  // ascending, of the pool's world
  friend bool operator==(const StartOnPool&, const StartOnPool&) = default;
};
struct CancelOnPool {
  PoolId pool;
  RunId run;
  friend bool operator==(const CancelOnPool&, const CancelOnPool&) = default;
};
struct AcknowledgeEnd {
  PoolId pool;
  RunId run;
  friend bool operator==(const AcknowledgeEnd&, const AcknowledgeEnd&) = default;
};
/// The pool is no longer counted on; its connection is to be closed.
struct DropPool {
  PoolId pool;
  std::string reason;
  friend bool operator==(const DropPool&, const DropPool&) = default;
};
using Effect = std::variant<StoreJob, StoreRun, StoreCancelAsked, StartOnPool, CancelOnPool,
                            AcknowledgeEnd, DropPool>;
using Effects = std::vector<Effect>;

struct QueueLimits {
  std::uint32_t attempts_max = 3;  // of a run that are lost
  std::size_t jobs_max = 100'000;  // that have not ended; further ones are refused
  std::chrono::milliseconds heartbeat_interval{2000};
  int heartbeats_missed_max = 3;
  /// Ranks are given so much work in advance, in runs of one job; none when its runs take longer.
  std::chrono::milliseconds ahead_time{100};
  std::size_t ahead_max = 16;  // runs
  /// Of what a user has had of the ranks: after so long it counts half.
  std::chrono::milliseconds share_half_life{3'600'000};
  /// From the first time that another passes a run that waits, until ranks are kept for it.
  std::chrono::milliseconds passing_max{60'000};
  /// When nothing of a user, a priority and a size has started for so long, it goes before all
  /// others.
  std::chrono::milliseconds starving_after{3'600'000};
  /// The ranks of a lost pool count so long as if they were there, for it may come back.
  std::chrono::milliseconds pool_return{15'000};
  /// How long a pool whose connection is cut may take to come back with its runs.
  std::chrono::milliseconds lease{60'000};
};

class Queue {
 public:
  using Time = std::chrono::milliseconds;  // since any fixed point

  explicit Queue(QueueLimits limits = {}) : limits_(limits), shares_(limits.share_half_life) {}

  Effects handle(const Input& input, Time now);

  /// How many further jobs may be accepted.
  std::size_t room() const { return limits_.jobs_max - std::min(limits_.jobs_max, jobs_.size()); }
  /// The state of a job that has not ended.
  std::optional<JobState> state_of(JobId job) const;
  /// Why the next run of this job has not started ("waits for 8 ranks; 2 free; 3 jobs before it");
  /// empty when it has no run that waits.
  std::string why_waits(JobId job) const;
  /// The run is under way on this pool.
  bool runs_on(PoolId pool, RunId run) const;
  /// The job of each rank of a pool, 0 for none; empty for one that has not been attached since the
  /// daemon was started.
  std::vector<JobId> rank_jobs(PoolId pool) const;
  /// It is away, and may come back with its runs.
  bool awaits(PoolId pool) const { return away_.contains(pool); }
  /// For so long; for a pool that is awaited.
  Time awaits_for(PoolId pool, Time now) const {
    return std::max(Time(0), away_.at(pool).heard + limits_.lease - now);
  }
  /// Nothing more is started, and what is lost from now on is queued again in any case: the daemon
  /// is about to end.
  void stop_starting() { starting_allowed_ = false; }

 private:
  using LaneId = StrongId<struct LaneTag, std::uint32_t>;

  /// Ranks of a pool, and the runs that they have been given: the first is under way.
  struct Lane {
    JobId job = 0;
    std::vector<std::uint32_t> ranks;
    std::deque<std::uint32_t> runs;
    Time front_since{};
  };
  struct Pool {
    std::vector<LaneId> rank_lanes;  // no_lane for a free rank
    std::size_t free = 0;
    std::map<LaneId, Lane> lanes;
    Time heard{};  // or, of one that is away, since when
    bool keeps_runs = false;
    std::string reason = {};  // why it is away
  };
  struct RunEntry {
    bool began = false;
    std::uint32_t attempt = 0;
    std::uint32_t losses = 0;
    PoolId pool;
    LaneId lane;
  };
  /// A run that is to be run again.
  struct Again {
    std::uint32_t attempt = 0;
    std::uint32_t losses = 0;  // how many of its attempts count against the bound
  };
  struct JobEntry {
    JobKind kind;
    bool is_waiting = false;           // in waiting_
    std::optional<Time> passed_since;  // another has started in spite of it
    RunCounts counts;
    std::uint32_t next_run = 0;
    std::map<std::uint32_t, Again> again;  // by their numbers
    std::map<std::uint32_t, RunEntry> under_way;
    std::uint32_t began = 0;    // of those under way
    std::uint32_t attempt = 0;  // the most of any run
    bool cancel_asked = false;
    std::string message;
    std::optional<FailedRun> first_failed;
    double run_ms_mean = 0;  // how long its runs take, once one has ended
    std::uint32_t run_ms_count = 0;
    StoreJob stored;

    bool one() const { return counts.total == 1; }
    bool waits() const { return !cancel_asked && (!again.empty() || next_run < counts.total); }
    JobState state() const;
  };
  using Jobs = std::map<JobId, JobEntry>;
  /// Where a job is in the order of starting: the least first.
  struct Place {
    Time starving_since = Time::max();
    int priority_negated = 0;
    double load = 0;
    JobId job = 0;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  struct GonePool {
    std::size_t ranks = 0;
    Time until{};
  };
  using Pools = std::set<PoolId>;

  static constexpr LaneId no_lane{0};

  void on(const JobAccepted& event);
  void on(const JobRestored& event);
  void on(const CancelAsked& event);
  void on(const PoolAttached& event);
  void on(const PoolHeard& event);
  void on(const PoolCut& event);
  void on(const PoolLost& event);
  void on(const PoolLeft& event);
  void on(const RunBegan& event);
  void on(const RunAdvanced& event);
  void on(const RunOver& event);
  void on(const TimePassed& event);

  void set_waiting(JobId id, JobEntry& job);
  Place place_of(const JobKind& kind, JobId id) const;
  std::vector<Place> order() const;
  void start_what_fits();
  bool start_one();
  bool start_next(JobId id, JobEntry& job, const Pools& kept);
  void passed_by(const std::vector<JobId>& blocked, PoolId pool);
  std::optional<PoolId> pool_to_keep(const JobEntry& job, const Pools& kept) const;
  std::size_t ranks_for(const JobEntry& job) const;
  std::pair<PoolId, LaneId> open_lane(JobId id, const JobEntry& job, const Pools& kept);
  std::pair<PoolId, LaneId> lane_with_room(JobId id, const JobEntry& job, const Pools& kept);
  std::size_t lane_runs_max(const JobEntry& job) const;
  Time leave_lane(JobEntry& job, std::uint32_t number);
  enum class Return { lost, given_back, not_begun };
  void restore_run(JobId id, JobEntry& job, const RestoredRun& run);
  static bool give_ranks(Pool& pool, LaneId id, const Lane& lane);
  std::vector<PoolId> silent_for(const std::map<PoolId, Pool>& pools, Time time) const;
  void cut(PoolId pool, const std::string& reason);
  Pool* find_pool(PoolId pool);
  const Pool* find_pool(PoolId pool) const;
  void remove_pool(PoolId id, Return how, std::string reason,
                   const std::vector<LostRun>& lost = {});
  void return_run(JobId id, std::uint32_t number, Return how, const std::string& reason);
  void end_run(JobId id, std::uint32_t number, JobState state, std::string message,
               std::string summary_json = {});
  void drop_waiting(JobId id, JobEntry& job);
  void store_run(JobId id, std::uint32_t number, JobState state, std::string message,
                 std::uint32_t attempt);
  void store_changed_jobs();
  void set_final_message(JobEntry& job) const;

  QueueLimits limits_;
  Jobs jobs_;
  Waiting waiting_;
  Shares shares_;
  std::set<JobId> changed_;  // by the input that is being handled
  std::map<PoolId, Pool> pools_;
  std::vector<GonePool> gone_;
  std::map<PoolId, Pool> away_;  // they may come back with their runs
  LaneId last_lane_ = no_lane;
  Effects effects_;
  Time now_{};
  std::optional<Time> checked_;  // when TimePassed came last
  bool starting_allowed_ = true;
};

}  // namespace jobs
}  // namespace pipewright
