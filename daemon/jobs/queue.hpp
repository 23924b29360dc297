// Which job runs when and where, as a state machine without I/O: what happens goes in, what is to
// be done comes out, in order. Time is an argument. It holds only jobs that have not ended.
//
// Jobs start in the order of their ids; the first that waits is never overtaken. A run that is lost
// is queued again with its old place, at most `attempts_max` times; a restart of the daemon does
// not count as the job's fault, so it never fails one.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "core/base/ids.hpp"
#include "proto/codec/pool.hpp"

namespace pipewright {

using JobId = std::uint32_t;
/// One attachment of a pool: a pool that comes back gets a new one.
using PoolId = StrongId<struct PoolTag, std::uint32_t>;

namespace jobs {

// What happens.
struct JobAccepted {
  JobId job = 0;
  int ranks_wanted = 1;
};
/// A job that had not ended when the daemon did, in the order of ids.
struct JobRestored {
  JobId job = 0;
  int ranks_wanted = 1;
  JobState state = JobState::queued;
  std::uint32_t attempt = 0;
  bool cancel_asked = false;
};
struct CancelAsked {
  JobId job = 0;
};
struct PoolAttached {
  PoolId pool;
  std::uint32_t ranks = 1;
};
struct PoolHeard {
  PoolId pool;
};
struct PoolLost {
  PoolId pool;
  std::string reason;
};
struct RunBegan {
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
using Input = std::variant<JobAccepted, JobRestored, CancelAsked, PoolAttached, PoolHeard, PoolLost,
                           RunBegan, RunOver, TimePassed>;

// What is to be done.
struct StoreState {
  JobId job = 0;
  JobState state = JobState::queued;
  std::string message;
  std::uint32_t attempt = 0;
  std::optional<PoolId> pool;        // of STARTING
  std::vector<std::uint32_t> ranks;  // of STARTING
  std::string summary_json;          // of SUCCEEDED
  friend bool operator==(const StoreState&, const StoreState&) = default;
};
/// The job is to end as soon as its pool answers; remembered over a restart of the daemon.
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
using Effect =
    std::variant<StoreState, StoreCancelAsked, StartOnPool, CancelOnPool, AcknowledgeEnd, DropPool>;
using Effects = std::vector<Effect>;

struct QueueLimits {
  std::uint32_t attempts_max = 3;
  std::size_t jobs_max = 100'000;  // that have not ended; further ones are refused
  std::chrono::milliseconds heartbeat_interval{2000};
  int heartbeats_missed_max = 3;
};

class Queue {
 public:
  using Time = std::chrono::milliseconds;  // since any fixed point

  explicit Queue(QueueLimits limits = {}) : limits_(limits) {}

  Effects handle(const Input& input, Time now);

  /// A JobAccepted would go beyond the bound.
  bool full() const { return jobs_.size() >= limits_.jobs_max; }
  /// The state of a job that has not ended.
  std::optional<JobState> state_of(JobId job) const;
  /// The run is under way on this pool.
  bool runs_on(PoolId pool, RunId run) const;
  /// The job of each rank of a pool, 0 for none; empty for a pool that is not attached.
  std::vector<JobId> rank_jobs(PoolId pool) const;
  /// Nothing more is started, and what is lost from now on is queued again in any case: the daemon
  /// is about to end.
  void stop_starting() { starting_allowed_ = false; }

 private:
  struct JobEntry {
    int ranks_wanted = 1;
    JobState state = JobState::queued;
    std::uint32_t attempt = 0;
    bool cancel_asked = false;
    PoolId pool;
    std::vector<std::uint32_t> ranks;
  };
  struct Pool {
    std::vector<JobId> rank_jobs;
    Time heard{};
  };
  using Jobs = std::map<JobId, JobEntry>;

  void on(const JobAccepted& event);
  void on(const JobRestored& event);
  void on(const CancelAsked& event);
  void on(const PoolAttached& event);
  void on(const PoolHeard& event);
  void on(const PoolLost& event);
  void on(const RunBegan& event);
  void on(const RunOver& event);
  void on(const TimePassed& event);

  void start_what_fits();
  bool start(JobId id, JobEntry& job);
  void lose_pool(PoolId pool, const std::string& reason);
  void run_lost(Jobs::iterator at, const std::string& reason);
  void free_ranks(const JobEntry& job);
  void end(Jobs::iterator at, JobState state, std::string message, std::string summary_json = {});
  void requeue(JobId id, JobEntry& job, std::string message);

  QueueLimits limits_;
  Jobs jobs_;
  std::set<JobId> waiting_;
  std::map<PoolId, Pool> pools_;
  Effects effects_;
  Time now_{};
  std::optional<Time> checked_;  // when TimePassed came last
  bool starting_allowed_ = true;
};

}  // namespace jobs
}  // namespace pipewright
