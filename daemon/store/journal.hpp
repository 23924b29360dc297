// What has happened to jobs since the last commit, and the records of those that are under way.
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

  /// `pool` is the name of the pool of a STARTING job.
  void add_state(const jobs::StoreState& change, const std::string& pool, std::int64_t now_unix_ms);
  void set_cancel_asked(JobId id);
  void set_progress(JobId id, const Progress& progress);
  void add_log(JobId id, LogLine line, std::int64_t now_unix_ms);
  /// Takes the points that are not there yet. Gives the index up to which all of the job's points
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
  const Job* under_way(JobId id) const;

 private:
  struct Entry {
    JobRecord record;
    std::vector<Event> pending;
    bool dirty = false;
  };

  /// The entry of a job that exists.
  Entry& entry(JobId id);
  void add_event(Entry& entry, std::int64_t now_unix_ms, decltype(Event::what) what);

  Store& store_;
  std::map<JobId, Entry> entries_;
  std::size_t pending_events_ = 0;
  bool dirty_ = false;
};

}  // namespace pipewright
