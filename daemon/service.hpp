// The daemon without its sockets: jobs, their events and files, the pools that run them and those
// who watch. One thread. What is promised to anybody (a job accepted, a point acknowledged, an
// event shown) has been committed before.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/train/sweep.hpp"
#include "daemon/jobs/queue.hpp"
#include "daemon/metrics.hpp"
#include "daemon/store/job_files.hpp"
#include "daemon/store/journal.hpp"
#include "daemon/store/store.hpp"
#include "proto/codec/checkpoint_folder.hpp"
#include "proto/codec/pool.hpp"

namespace pipewright {

/// The connection of a pool.
class PoolPort {
 public:
  virtual ~PoolPort() = default;
  /// Queues a frame (encoded) behind those sent before. Returns at once.
  virtual void send(std::string frame) = 0;
  /// Closes the connection; Service::detach follows.
  virtual void close(const std::string& reason) = 0;
};

/// Somebody who watches a job.
class StreamPort {
 public:
  virtual ~StreamPort() = default;
  /// There is news of the job, or the daemon is about to end. Returns at once.
  virtual void wake() = 0;
};

/// Which ended jobs are deleted by themselves, those first that ended first.
struct Retention {
  std::optional<std::chrono::seconds> age_max;  // since their end
  std::optional<std::int64_t> bytes_max;        // of the store and all files together
  std::chrono::milliseconds check_interval{60'000};
};

struct ServiceLimits {
  jobs::QueueLimits queue;
  std::size_t pending_events_flush = 20'000;   // committed at once, not at the next tick
  std::size_t pending_events_max = 1'000'000;  // while the disk refuses; beyond it pools wait
  std::size_t log_text_bytes_max = 16 * 1024;  // of one line; longer ones are cut
  Retention retention;
  std::vector<std::string> data_roots;  // told to pools; none: no bounds
};

class Service {
 public:
  /// Takes up the jobs that had not ended. Throws StoreError.
  Service(const std::filesystem::path& data_dir, ServiceLimits limits = {});

  // Jobs. All of these may throw StoreError.
  struct Submitted {
    JobId id = 0;
    bool is_new = true;
  };
  /// The job is on disk, or why it was not taken: KeyTaken, QueueFull or StoreError.
  using SubmitResult = std::variant<Submitted, std::exception_ptr>;
  using OnSubmitted = std::function<void(const SubmitResult& result)>;
  /// What submit() takes; `checked` comes from check_job. For any thread. Throws ConfigError for a
  /// job that cannot be stored, too.
  static Store::NewJob prepare(Value checked, Submission by);
  /// Takes a job with the next commit() (see on_news), which it shares with all others that came
  /// until then; `done` hears of it. With the key of an earlier job of the user that is the same,
  /// it is that one; KeyTaken when it is another.
  void submit(Store::NewJob job, OnSubmitted done);
  std::optional<Job> job(JobId id);
  /// Without its spec and, of many runs, their table.
  std::optional<Job> brief(JobId id) { return journal_.find(id); }
  JobList list(const ListQuery& query);
  /// The runs of a job that is there, from number `from` on, `limit` at most.
  RunList runs(JobId id, std::uint32_t from, std::size_t limit);
  enum class CancelAnswer { asked, has_ended, unknown };
  CancelAnswer cancel(JobId id);
  enum class RemoveAnswer { removed, has_not_ended, unknown };
  /// Deletes an ended job with its events and files.
  RemoveAnswer remove(JobId id);
  EventList events(JobId id, const EventQuery& query) { return store_.events(id, query); }
  SeriesData series(JobId id, std::uint32_t run, const SeriesQuery& query) {
    return store_.series(id, run, query);
  }
  const JobFiles& files() const { return files_; }

  /// For Prometheus, as it is now.
  std::string metrics_text();
  Metrics& metrics() { return metrics_; }
  /// Why jobs are not taken at the moment; empty when they are.
  std::string not_ready() const;

  // Streams.
  void subscribe(JobId id, StreamPort& port) { feeds_[id].ports.insert(&port); }
  void unsubscribe(JobId id, StreamPort& port);
  /// Committed events from `from` on, a few hundred at most; empty when there are none yet.
  EventList next_events(JobId id, std::uint64_t from);
  /// Everything about the job has been committed, its end included.
  bool has_ended(JobId id);
  /// False once it has been deleted.
  bool knows(JobId id) { return store_.contains(id); }
  /// No end of this run waits for a commit.
  bool run_is_stored(JobId id, std::uint32_t run) const {
    return journal_.run_under_way(id, run) == nullptr;
  }
  std::optional<Progress> progress(JobId id) const;
  std::size_t streams() const;
  /// Something else than their job may have changed for them.
  void wake_all_streams();

  // Pools.
  std::variant<PoolId, Refused> attach(const PoolHello& hello, PoolPort& port);
  /// Throws ProtocolError for a frame that must not come; the connection is to be closed then.
  void on_frame(PoolId pool, const PoolFrame& frame);
  /// Its connection has gone: this one, not a later one of the same pool.
  void detach(PoolId pool, const PoolPort& port, const std::string& reason);
  PoolList pools() const;
  enum class DropAnswer { dropped, is_there, unknown };
  /// Waits no longer for a pool that is away: its runs are queued again, whether or not it comes
  /// back with them.
  DropAnswer drop_pool(const std::string& name, const std::string& why);
  std::size_t pools_attached() const { return pools_.size(); }
  /// False while more waits for the disk than should: a pool is not read from then.
  bool has_room() const {
    return files_wait_.empty() && journal_.pending_events() < limits_.pending_events_max;
  }
  std::chrono::milliseconds heartbeat_interval() const { return limits_.queue.heartbeat_interval; }
  /// The name under which a pool of this machine will attach, for pools().
  void expect_local_pool(std::string name) { local_pool_ = std::move(name); }
  /// Its processes are there no more, so it does not come back with its runs. `is_loss`: not when
  /// they ended with an earlier daemon.
  void local_pool_ended(const std::string& how, bool is_loss);
  /// It has runs.
  bool local_pool_works() const;
  /// True once after it has left, or was dropped.
  bool local_pool_has_left();

  /// `wake` is called when runs have ended or jobs were submitted and is to lead to a commit()
  /// within a few milliseconds: several of them then share what makes them last.
  void on_news(std::function<void()> wake) { wake_for_news_ = std::move(wake); }

  /// To be called a few times a second: commits what waits, notices silent pools.
  void tick();
  /// Commits what waits, if the store takes it.
  void commit();
  /// Nothing more is started; pools are asked to leave, streams to close.
  void shut_down(const std::string& reason);
  /// Why streams are to close; empty while they are not.
  const std::string& closing() const { return closing_; }

 private:
  struct AttachedPool {
    PoolInfo info;
    PoolPort* port = nullptr;
    std::string instance;
    std::int64_t process = 0;  // of its rank 0
  };
  /// A pool that may come back with its runs.
  struct AwayPool {
    PoolId id;
    std::string instance;  // unknown of one that was there before this daemon, like the process
    std::int64_t process = 0;
    PoolInfo info;
  };
  struct Feed {
    std::set<StreamPort*> ports;
    std::shared_ptr<const EventList> newest;  // what was committed last, so that not every stream
                                              // reads it from the store
  };
  using Outgoing = std::variant<DaemonFrame, jobs::StartOnPool>;
  struct Waiting {
    Store::NewJob job;
    OnSubmitted done;
  };

  void on_run_frame(PoolId pool, const RunStarted& frame);
  void on_run_frame(PoolId pool, const RunPoints& frame);
  void on_run_frame(PoolId pool, const RunProgress& frame);
  void on_run_frame(PoolId pool, const RunLog& frame);
  void on_run_frame(PoolId pool, const RunFileChunk& frame);
  void on_run_frame(PoolId pool, const RunEnded& frame);
  void on_run_frame(PoolId pool, const CheckpointChunk& frame);
  void on_run_frame(PoolId pool, const CheckpointSent& frame);
  void on_run_frame(PoolId pool, const CheckpointWanted& frame);
  CheckpointFolder checkpoints_of(RunId run) const {
    return CheckpointFolder(files_.checkpoints({run.job, run.run}));
  }
  std::vector<std::string> checkpoint_for(RunId run) const;
  bool take_file(PoolId pool, const RunFileChunk& frame);
  void take_waiting_files();

  void remove(PoolId pool, const std::string& reason, const jobs::Input& input);
  PoolId id_of(const PoolHello& hello);
  void note_away(PoolId id, AttachedPool pool);
  void forget_pools();
  jobs::JobRestored restored(const JobRecord& record);
  jobs::RestoredRun restored(const RunRecord& record);
  void put(const jobs::Input& input);
  bool handle(const jobs::Input& input);
  void take_submissions();
  std::vector<Waiting> next_submissions();
  void take(std::vector<Waiting> batch);
  std::optional<Submitted> known(const Store::NewJob& job);
  void take_ends();
  void perform(const jobs::Effect& effect);
  void count(const jobs::StoreRun& change);
  bool flush();
  void publish(const std::vector<Journal::Committed>& committed);
  void send_outgoing();
  std::string encode_outgoing(const Outgoing& outgoing);
  void retain();
  void delete_ended(JobId id);
  void fail_to_start(const jobs::StartOnPool& start, const std::string& why);
  const JobRuns& runs_of(JobId id);
  void add_table(Job& job);
  void wake_streams(JobId id);

  ServiceLimits limits_;
  Metrics metrics_;
  Store store_;
  JobFiles files_;
  Journal journal_;
  jobs::Queue queue_;
  std::map<PoolId, AttachedPool> pools_;
  std::map<std::string, AwayPool> away_;  // by name
  PoolId last_pool_;
  std::map<JobId, Feed> feeds_;
  std::map<std::pair<PoolId, RunId>, std::uint64_t> acknowledgements_;  // after the next commit
  std::vector<std::pair<PoolId, Outgoing>> outgoing_;                   // after the next commit
  std::vector<jobs::RunOver> ended_;  // their files are not synced yet
  std::vector<Waiting> submissions_;
  std::function<void()> wake_for_news_ = [] {};
  std::map<RunKey, std::string> file_faults_;
  std::deque<std::pair<PoolId, RunFileChunk>> files_wait_;  // for the disk
  std::string files_fault_;                                 // why they wait
  std::set<RunKey> checkpoint_faults_;  // something of the one under way could not be stored
  std::list<std::pair<JobId, JobRuns>> runs_of_;  // of a few jobs, that asked for last first
  std::string local_pool_;
  bool local_pool_left_ = false;
  std::string closing_;
  std::string store_fault_;                    // the last one that was logged
  std::optional<jobs::Queue::Time> retained_;  // when that was looked at last
};

/// So many jobs wait that no more are taken.
class QueueFull : public Error {
 public:
  using Error::Error;
};

/// Another job was submitted under this key.
class KeyTaken : public Error {
 public:
  using Error::Error;
};

}  // namespace pipewright
