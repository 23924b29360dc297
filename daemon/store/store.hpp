// Jobs, their runs and their events on disk: SQLite in WAL mode with synchronous=FULL, so what a
// call has returned from survives a crash of the machine. Consecutive points share a row. Every
// call may throw StoreError; then nothing of it is stored.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/store/sqlite.hpp"
#include "proto/codec/api.hpp"
#include "proto/codec/series.hpp"

namespace pipewright {

/// A job as it is stored, without its spec.
struct JobRecord {
  Job job;
  int ranks_wanted = 1;
  int priority = 0;
  bool cancel_asked = false;
  std::uint32_t next_run = 0;  // those from here on have never been started and have no record
};

/// Whose jobs are those submitted with the token of the data folder, and those of stores that did
/// not know users.
inline constexpr std::string_view admin_user = "admin";

/// Who submits a job, and under which key of his own; an empty one is none.
struct Submission {
  std::string user{admin_user};
  std::string idempotency_key = {};
};

/// A run that has been started, without what it sweeps.
struct RunRecord {
  Run run;
  std::uint64_t point_count = 0;  // points stored; the first has the index 0
};

/// Of a job of one run: what the job shows of it.
void show_run(Job& job, const Run& run);

/// What one transaction writes of a job: its record, those of some of its runs, and events that
/// follow those stored.
struct JobWrite {
  const JobRecord* record = nullptr;
  std::vector<const RunRecord*> runs;
  std::span<const Event> events;
};

enum class EventKind : std::uint8_t { state = 1, point = 2, log = 3, run_state = 4 };

struct EventQuery {
  std::uint64_t from = 1;
  std::size_t limit = 1000;
  std::optional<EventKind> kind;
  std::optional<std::uint32_t> run;  // only events of this run, so no changes of the job's state
};

struct ListQuery {
  std::size_t limit = 50;
  std::uint32_t before = 0;  // 0: from the newest on
  std::optional<JobState> state;
};

struct SeriesQuery {
  Series series = Series::objective;
  XAxis x = XAxis::tick;
  std::optional<std::int64_t> from, to;  // both included; else all
  std::size_t buckets = 2000;  // at most; no more than twice as many points come as they are
};

class Store {
 public:
  static constexpr std::int64_t schema_version = 8;

  explicit Store(const std::filesystem::path& file);

  struct NewJob {
    /// Throws ConfigError for a job with numbers that would not survive.
    NewJob(Value job, int ranks, std::uint32_t run_count, Submission submission = {})
        : spec(std::move(job)),
          spec_bytes(encode(JobSpecBody{spec}, WireFormat::protobuf)),
          ranks_wanted(ranks),
          runs(run_count),
          by(std::move(submission)) {}

    Value spec;
    std::string spec_bytes;  // as it is stored
    int ranks_wanted;
    std::uint32_t runs;
    Submission by;
  };
  /// The ids of new jobs, in one commit. They are QUEUED; that is the first event of each. A key
  /// that is not empty must not be that of another job of its user.
  std::vector<std::uint32_t> add_jobs(std::span<const NewJob> jobs, std::int64_t now_unix_ms);
  std::uint32_t add_job(const Value& spec, int ranks_wanted, std::uint32_t runs,
                        std::int64_t now_unix_ms, const Submission& by = {}) {
    const NewJob job{spec, ranks_wanted, runs, by};
    return add_jobs({&job, 1}, now_unix_ms).front();
  }
  /// The job that this user added with this key.
  std::optional<std::uint32_t> find_key(const Submission& by);
  /// Forgets a job and all of its events; its id is not used again.
  void remove(std::uint32_t id);
  void write(std::span<const JobWrite> writes);

  /// A job of one run shows what its run does.
  std::optional<JobRecord> find(std::uint32_t id);
  std::optional<Value> spec(std::uint32_t id);
  /// Newest first, with their specs, but without the tables of many runs.
  JobList list(const ListQuery& query);
  /// Jobs that have not ended, in the order of their ids.
  std::vector<JobRecord> unfinished();

  struct Ended {
    std::uint32_t id = 0;
    std::int64_t ended_unix_ms = 0;
  };
  bool contains(std::uint32_t id);
  /// Of all jobs, ascending.
  std::vector<std::uint32_t> ids();
  /// Of the jobs that have ended the one that did so first.
  std::optional<Ended> ended_first();
  std::map<JobState, std::int64_t> count_by_state();
  /// Bytes of the data base that hold something.
  std::int64_t bytes_used();

  std::optional<RunRecord> find_run(std::uint32_t id, std::uint32_t run);
  /// Runs that have been started, in the order of their numbers, from `from` on.
  std::vector<RunRecord> runs(std::uint32_t id, std::uint32_t from, std::size_t limit);
  /// Of these the ones that have not ended.
  std::vector<RunRecord> unfinished_runs(std::uint32_t id);
  std::optional<Run> first_failed_run(std::uint32_t id);
  /// Calls `visit(run number, summary_json)` for every run that has succeeded.
  void each_summary(std::uint32_t id,
                    const std::function<void(std::uint32_t, std::string_view)>& visit);
  /// The table of a job of many runs that has ended; large, so no record has it. Empty until it is
  /// set.
  std::string table(std::uint32_t id);
  void set_table(std::uint32_t id, std::string_view json);

  EventList events(std::uint32_t id, const EventQuery& query);
  /// One series of a run, down-sampled. Its time does not grow with the length of the run, but for
  /// a summary of every few hundred points.
  SeriesData series(std::uint32_t id, std::uint32_t run, const SeriesQuery& query);

 private:
  /// The number of points that a run has stored, by its number.
  using PointCounts = std::map<std::uint32_t, std::uint64_t>;

  void insert_events(std::uint32_t id, std::span<const Event> events, PointCounts points);
  void insert_row(std::uint32_t id, std::int64_t run, std::uint64_t first_sequence,
                  std::uint64_t last_sequence, EventKind kind, std::string_view data);
  void insert_points(std::uint32_t id, std::span<const Event> points, std::uint64_t first_point);
  std::vector<Event> take_short_row(std::uint32_t id, std::uint32_t run,
                                    std::uint64_t last_sequence, std::size_t room);
  /// Of the row of these points, which is the run's last.
  void drop_summaries(std::uint32_t id, std::uint32_t run, std::int64_t sequence,
                      std::span<const Event> points);
  /// Of a row of points that has been or will be stored; the run's points before it number
  /// `first_point`.
  void add_summaries(std::uint32_t id, std::uint32_t run, std::uint64_t first_point,
                     std::int64_t sequence, std::string_view blob);
  std::int64_t points_of_series(std::uint32_t id, std::uint32_t run, Series series);
  void summarize_all();
  void write_runs(std::span<const RunRecord* const> runs);

  sqlite::Database database_;
};

}  // namespace pipewright
