// What has happened to jobs since the last commit, and the records of jobs and runs that are under
// way.
// Events get here as they happen and reach the disk (and only then anybody's eyes) with commit(),
// which writes everything in one transaction.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/jobs/queue.hpp"
#include "daemon/store/store.hpp"

namespace pipewright {

class Journal {
 public:
  explicit Journal(Store& store) : store_(store) {}

  /// An event when state, message or attempt are others than before.
  void add_job_state(const jobs::StoreJob& change, std::int64_t now_unix_ms);
  /// An event in a job of many runs. `pool` is the name of the pool of a STARTING run.
  void add_run_state(const jobs::StoreRun& change, const std::string& pool,
                     std::int64_t now_unix_ms);
  void set_cancel_asked(JobId id);
  void set_progress(RunId run, const Progress& progress);
  /// One that begins an attempt at the run.
  void add_maker(RunId run, const Maker& maker);
  void add_log(RunId run, LogLine line, std::int64_t now_unix_ms);
  /// Takes the points that are not there yet. Gives the index up to which all of the run's points
  /// are in the store after the next commit, but not more than were sent here. Throws ProtocolError
  /// when points are missing before these.
  std::uint64_t add_points(const RunPoints& points, std::int64_t now_unix_ms);

  /// Something waits to be committed.
  bool dirty() const { return dirty_; }
  std::size_t pending_events() const { return pending_events_; }

  struct Committed {
    JobId job = 0;
    std::shared_ptr<const EventList> events;
  };
  /// After a StoreError everything still waits.
  std::vector<Committed> commit();

  /// The job as it is now, without its spec. Its last_sequence is that of the last commit.
  std::optional<Job> find(JobId id);
  /// The same for jobs that are under way only: what the store does not know yet.
  std::optional<Job> under_way(JobId id) const;
  /// A run that is under way, without what it sweeps.
  const Run* run_under_way(JobId id, std::uint32_t number) const;

 private:
  struct RunEntry {
    RunRecord record;
    bool dirty = false;
  };
  struct Entry {
    JobRecord record;
    std::map<std::uint32_t, RunEntry> runs;
    std::vector<Event> pending;
    bool dirty = false;
  };

  /// The entry of a job that exists.
  Entry& entry(JobId id);
  RunEntry& run_entry(Entry& entry, std::uint32_t number);
  void add_event(Entry& entry, std::uint32_t run, std::int64_t now_unix_ms,
                 decltype(Event::what) what);

  Store& store_;
  std::map<JobId, Entry> entries_;
  std::size_t pending_events_ = 0;
  bool dirty_ = false;
};

}  // namespace pipewright
