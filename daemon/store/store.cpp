#include "daemon/store/store.hpp"

#include <algorithm>

#include "core/base/text.hpp"
#include "daemon/store/point_blob.hpp"
#include "daemon/store/schema.hpp"
#include "proto/codec/json.hpp"
#include "proto/codec/provenance.hpp"

namespace pipewright {
namespace {

// Points of one row at most: what a reader decodes to get at one of them.
constexpr std::size_t points_per_row_max = 512;
constexpr std::size_t point_bytes_typical = 16;

// In place of a run's number, of events that are the job's.
constexpr std::int64_t no_run = -1;

constexpr const char* job_columns =
    "id, state, message, attempt, submitted_unix_ms, started_unix_ms, ended_unix_ms,"
    " objective_last, objective_best, last_sequence, ranks_wanted, cancel_asked,"
    " runs, runs_under_way, runs_succeeded, runs_failed, runs_cancelled, next_run, user,"
    " priority, last_stage_loss";
constexpr int job_column_count = 21;

constexpr const char* run_columns =
    "job, run, state, message, attempt, started_unix_ms, ended_unix_ms, progress, objective_last,"
    " objective_best, point_count, pool, ranks, summary_json, last_stage_loss, makers";

EventKind kind_of(const Event& event) {
  return static_cast<EventKind>(event.what.index() + 1);
}

std::string ranks_text(const std::vector<std::uint32_t>& ranks) {
  std::vector<std::string> words;
  for (const std::uint32_t rank : ranks) words.push_back(std::to_string(rank));
  return join(words, ",");
}

std::vector<std::uint32_t> ranks_from(std::string_view text) {
  std::vector<std::uint32_t> ranks;
  if (text.empty()) return ranks;
  for (const std::string_view word : split(text, ',')) {
    ranks.push_back(static_cast<std::uint32_t>(parse_integer(word).value_or(0)));
  }
  return ranks;
}

std::uint32_t unsigned_at(const sqlite::Statement& row, int column) {
  return static_cast<std::uint32_t>(row.integer(column));
}

/// From a row that begins with `job_columns`.
JobRecord record_from(const sqlite::Statement& row) {
  JobRecord record;
  Job& job = record.job;
  job.id = unsigned_at(row, 0);
  job.state = static_cast<JobState>(row.integer(1));
  job.message = row.text(2);
  job.attempt = unsigned_at(row, 3);
  job.submitted_unix_ms = row.integer(4);
  job.started_unix_ms = row.integer(5);
  job.ended_unix_ms = row.integer(6);
  job.objective_last = row.real(7);
  job.objective_best = row.real(8);
  job.last_sequence = static_cast<std::uint64_t>(row.integer(9));
  record.ranks_wanted = static_cast<int>(row.integer(10));
  record.cancel_asked = row.integer(11) != 0;
  job.progress.runs = {unsigned_at(row, 12), unsigned_at(row, 13), unsigned_at(row, 14),
                       unsigned_at(row, 15), unsigned_at(row, 16)};
  record.next_run = unsigned_at(row, 17);
  job.user = row.text(18);
  record.priority = static_cast<int>(row.integer(19));
  job.last_stage_loss = row.real(20);
  return record;
}

/// From a row of `run_columns`.
RunRecord run_from(const sqlite::Statement& row) {
  RunRecord record;
  Run& run = record.run;
  run.job = unsigned_at(row, 0);
  run.number = unsigned_at(row, 1);
  run.state = static_cast<JobState>(row.integer(2));
  run.message = row.text(3);
  run.attempt = unsigned_at(row, 4);
  run.started_unix_ms = row.integer(5);
  run.ended_unix_ms = row.integer(6);
  run.progress = decode<Progress>(row.blob(7), WireFormat::protobuf);
  run.objective_last = row.real(8);
  run.objective_best = row.real(9);
  record.point_count = static_cast<std::uint64_t>(row.integer(10));
  run.pool = row.text(11);
  run.ranks = ranks_from(row.text(12));
  run.summary_json = row.text(13);
  run.last_stage_loss = row.real(14);
  run.makers = makers_from(value_from_json(row.text(15)));
  return record;
}

Value spec_from(std::string_view blob) {
  return decode<JobSpecBody>(blob, WireFormat::protobuf).spec;
}

}  // namespace

void show_run(Job& job, const Run& run) {
  const RunCounts counts = job.progress.runs;
  job.progress = run.progress;
  job.progress.runs = counts;
  job.pool = run.pool;
  job.ranks = run.ranks;
  job.summary_json = run.summary_json;
  job.makers = run.makers;
}

Store::Store(const std::filesystem::path& file) : database_(file) {
  database_.execute("PRAGMA journal_mode = WAL");
  database_.execute("PRAGMA synchronous = FULL");
  database_.execute("PRAGMA cache_size = -32768");  // KiB: series of long runs read many rows
  const std::int64_t version = database_.pragma("user_version");
  if (version == 0 || (version >= 2 && version < schema_version)) {
    sqlite::Transaction transaction(database_);
    if (version == 0) database_.execute(schema);
    if (version < 3) database_.execute(since_version_3);
    if (version < 4) database_.execute(since_version_4);
    if (version < 5) database_.execute(since_version_5);
    if (version < 6) database_.execute(since_version_6);
    if (version < 7) database_.execute(since_version_7);
    database_.execute(since_version_8);
    if (version > 0 && version < 7) summarize_all();
    transaction.commit();
  } else if (version != schema_version) {
    throw StoreError(file.string() + ": was written by another version of pipewrightd (schema " +
                     std::to_string(version) + "; this one knows " +
                     std::to_string(schema_version) +
                     "); go on with that version, or with another data folder");
  }
}

std::vector<std::uint32_t> Store::add_jobs(std::span<const NewJob> jobs, std::int64_t now_unix_ms) {
  sqlite::Transaction transaction(database_);
  sqlite::Statement insert(database_,
                           "INSERT INTO jobs(spec, ranks_wanted, state, submitted_unix_ms, runs,"
                           " last_sequence, user, idempotency_key, priority)"
                           " VALUES(?1, ?2, ?3, ?4, ?5, 1, ?6, NULLIF(?7, ''), ?8)");
  const Event queued{.sequence = 1,
                     .time_unix_ms = now_unix_ms,
                     .what = StateChange{.state = JobState::queued, .message = {}, .attempt = 0}};
  std::vector<std::uint32_t> ids;
  for (const NewJob& job : jobs) {
    const Value* priority = job.spec.find("priority");
    insert
        .bind(sqlite::Blob{job.spec_bytes}, std::int64_t{job.ranks_wanted},
              static_cast<std::int64_t>(JobState::queued), now_unix_ms, std::int64_t{job.runs},
              std::string_view(job.by.user), std::string_view(job.by.idempotency_key),
              priority == nullptr ? std::int64_t{0} : priority->as_integer())
        .run();
    ids.push_back(static_cast<std::uint32_t>(database_.last_insert_id()));
    insert_events(ids.back(), {&queued, 1}, {});
  }
  transaction.commit();
  return ids;
}

void Store::write(std::span<const JobWrite> writes) {
  sqlite::Transaction transaction(database_);
  sqlite::Statement update(
      database_,
      "UPDATE jobs SET state=?2, message=?3, attempt=?4, started_unix_ms=?5, ended_unix_ms=?6,"
      " objective_last=?7, objective_best=?8, last_sequence=?9, cancel_asked=?10,"
      " runs_under_way=?11, runs_succeeded=?12, runs_failed=?13, runs_cancelled=?14, next_run=?15,"
      " last_stage_loss=?16"
      " WHERE id=?1");
  for (const JobWrite& write : writes) {
    const Job& job = write.record->job;
    const RunCounts& runs = job.progress.runs;
    update
        .bind(std::int64_t{job.id}, static_cast<std::int64_t>(job.state),
              std::string_view(job.message), std::int64_t{job.attempt}, job.started_unix_ms,
              job.ended_unix_ms, job.objective_last, job.objective_best,
              static_cast<std::int64_t>(job.last_sequence),
              std::int64_t{write.record->cancel_asked}, std::int64_t{runs.under_way},
              std::int64_t{runs.succeeded}, std::int64_t{runs.failed}, std::int64_t{runs.cancelled},
              std::int64_t{write.record->next_run}, job.last_stage_loss)
        .run();
    write_runs(write.runs);
    PointCounts points;
    for (const RunRecord* run : write.runs) points[run->run.number] = run->point_count;
    for (const Event& event : write.events) {
      if (kind_of(event) == EventKind::point) --points[event.run];
    }
    insert_events(job.id, write.events, std::move(points));
  }
  transaction.commit();
}

void Store::write_runs(std::span<const RunRecord* const> runs) {
  if (runs.empty()) return;
  sqlite::Statement replace(database_,
                            std::string("INSERT OR REPLACE INTO runs(") + run_columns +
                                ") VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13,"
                                " ?14, ?15, ?16)");
  for (const RunRecord* record : runs) {
    const Run& run = record->run;
    const std::string progress = encode(run.progress, WireFormat::protobuf);
    replace
        .bind(std::int64_t{run.job}, std::int64_t{run.number}, static_cast<std::int64_t>(run.state),
              std::string_view(run.message), std::int64_t{run.attempt}, run.started_unix_ms,
              run.ended_unix_ms, sqlite::Blob{progress}, run.objective_last, run.objective_best,
              static_cast<std::int64_t>(record->point_count), std::string_view(run.pool),
              std::string_view(ranks_text(run.ranks)), std::string_view(run.summary_json),
              run.last_stage_loss, std::string_view(to_json(to_value(run.makers), -1)))
        .run();
  }
}

/// `points`: as it was before these events.
void Store::insert_events(std::uint32_t id, std::span<const Event> events, PointCounts points) {
  while (!events.empty()) {
    const Event& first = events.front();
    const EventKind kind = kind_of(first);
    std::size_t count = 1;
    if (kind == EventKind::point) {
      while (count < events.size() && count < points_per_row_max &&
             kind_of(events[count]) == EventKind::point && events[count].run == first.run) {
        ++count;
      }
      std::uint64_t& stored = points[first.run];
      insert_points(id, events.first(count), stored);
      stored += count;
    } else {
      insert_row(id, kind == EventKind::state ? no_run : first.run, first.sequence, first.sequence,
                 kind, encode_event(first));
    }
    events = events.subspan(count);
  }
}

void Store::insert_row(std::uint32_t id, std::int64_t run, std::uint64_t first_sequence,
                       std::uint64_t last_sequence, EventKind kind, std::string_view data) {
  sqlite::Statement insert(database_,
                           "INSERT INTO events(job, run, first_sequence, last_sequence, kind, data)"
                           " VALUES(?1, ?2, ?3, ?4, ?5, ?6)");
  insert
      .bind(std::int64_t{id}, run, static_cast<std::int64_t>(first_sequence),
            static_cast<std::int64_t>(last_sequence), static_cast<std::int64_t>(kind),
            sqlite::Blob{data})
      .run();
}

/// One row of points; the run's before them number `first_point`.
void Store::insert_points(std::uint32_t id, std::span<const Event> points,
                          std::uint64_t first_point) {
  const std::uint32_t run = points.front().run;
  const std::vector<Event> before =
      take_short_row(id, run, points.front().sequence - 1, points_per_row_max - points.size());
  std::vector<Event> joined;
  if (!before.empty()) {
    joined = before;
    joined.insert(joined.end(), points.begin(), points.end());
    points = joined;
    first_point -= before.size();
  }
  const std::string data = encode_points(points);
  const std::uint64_t last = points.back().sequence;
  insert_row(id, run, points.front().sequence, last, EventKind::point, data);
  add_summaries(id, run, first_point, static_cast<std::int64_t>(last), data);
}

/// Where points come few at a time, rows would have few, and a long run very many of them: so a row
/// with room for those that come is taken out, and put back with them.
std::vector<Event> Store::take_short_row(std::uint32_t id, std::uint32_t run,
                                         std::uint64_t last_sequence, std::size_t room) {
  if (room == 0) return {};
  std::vector<Event> events;
  std::int64_t row = 0;
  {
    sqlite::Statement select(database_,
                             "SELECT rowid, first_sequence, data FROM events WHERE job=?1"
                             " AND last_sequence=?2 AND run=?3 AND kind=?4 AND length(data)<?5");
    select.bind(std::int64_t{id}, static_cast<std::int64_t>(last_sequence), std::int64_t{run},
                static_cast<std::int64_t>(EventKind::point),
                static_cast<std::int64_t>(room * point_bytes_typical));
    if (!select.step()) return {};
    row = select.integer(0);
    events = decode_points(select.blob(2), static_cast<std::uint64_t>(select.integer(1)));
  }
  if (events.size() > room) return {};
  sqlite::Statement(database_, "DELETE FROM events WHERE rowid=?1").bind(row).run();
  drop_summaries(id, run, static_cast<std::int64_t>(last_sequence), events);
  return events;
}

std::optional<JobRecord> Store::find(std::uint32_t id) {
  sqlite::Statement select(database_,
                           std::string("SELECT ") + job_columns + " FROM jobs WHERE id=?1");
  if (!select.bind(std::int64_t{id}).step()) return std::nullopt;
  JobRecord record = record_from(select);
  if (record.job.progress.runs.total == 1) {
    if (const auto run = find_run(id, 0)) show_run(record.job, run->run);
  }
  return record;
}

std::optional<std::uint32_t> Store::find_key(const Submission& by) {
  sqlite::Statement select(database_, "SELECT id FROM jobs WHERE user=?1 AND idempotency_key=?2");
  if (!select.bind(std::string_view(by.user), std::string_view(by.idempotency_key)).step())
    return std::nullopt;
  return unsigned_at(select, 0);
}

void Store::remove(std::uint32_t id) {
  sqlite::Transaction transaction(database_);
  for (const char* sql :
       {"DELETE FROM point_summaries WHERE job=?1", "DELETE FROM events WHERE job=?1",
        "DELETE FROM runs WHERE job=?1", "DELETE FROM jobs WHERE id=?1"}) {
    sqlite::Statement(database_, sql).bind(std::int64_t{id}).run();
  }
  transaction.commit();
}

bool Store::contains(std::uint32_t id) {
  sqlite::Statement select(database_, "SELECT 1 FROM jobs WHERE id=?1");
  return select.bind(std::int64_t{id}).step();
}

std::vector<std::uint32_t> Store::ids() {
  sqlite::Statement select(database_, "SELECT id FROM jobs ORDER BY id");
  std::vector<std::uint32_t> ids;
  while (select.step()) ids.push_back(unsigned_at(select, 0));
  return ids;
}

std::optional<Store::Ended> Store::ended_first() {
  sqlite::Statement select(database_,
                           "SELECT id, ended_unix_ms FROM jobs WHERE ended_unix_ms > 0"
                           " AND state IN (?1, ?2, ?3) ORDER BY ended_unix_ms, id LIMIT 1");
  select.bind(static_cast<std::int64_t>(JobState::succeeded),
              static_cast<std::int64_t>(JobState::failed),
              static_cast<std::int64_t>(JobState::cancelled));
  if (!select.step()) return std::nullopt;
  return Ended{unsigned_at(select, 0), select.integer(1)};
}

std::map<JobState, std::int64_t> Store::count_by_state() {
  sqlite::Statement select(database_, "SELECT state, COUNT(*) FROM jobs GROUP BY state");
  std::map<JobState, std::int64_t> counts;
  while (select.step()) counts[static_cast<JobState>(select.integer(0))] = select.integer(1);
  return counts;
}

std::int64_t Store::bytes_used() {
  return (database_.pragma("page_count") - database_.pragma("freelist_count")) *
         database_.pragma("page_size");
}

std::optional<Value> Store::spec(std::uint32_t id) {
  sqlite::Statement select(database_, "SELECT spec FROM jobs WHERE id=?1");
  if (!select.bind(std::int64_t{id}).step()) return std::nullopt;
  return spec_from(select.blob(0));
}

JobList Store::list(const ListQuery& query) {
  const std::string sql = std::string("SELECT ") + job_columns + ", spec FROM jobs WHERE id<?1" +
                          (query.state ? " AND state=?3" : "") + " ORDER BY id DESC LIMIT ?2";
  sqlite::Statement select(database_, sql);
  const std::int64_t before = query.before == 0 ? std::int64_t{1} << 62 : query.before;
  const auto limit = static_cast<std::int64_t>(query.limit) + 1;  // one more: is there a next page?
  if (query.state) {
    select.bind(before, limit, static_cast<std::int64_t>(*query.state));
  } else {
    select.bind(before, limit);
  }
  JobList list;
  while (select.step()) {
    if (list.jobs.size() == query.limit) {
      list.next_before = list.jobs.back().id;
      break;
    }
    Job job = record_from(select).job;
    if (job.progress.runs.total == 1) {
      if (const auto run = find_run(job.id, 0)) show_run(job, run->run);
    }
    job.summary_json.clear();  // lists are short
    job.makers.clear();
    job.spec = spec_from(select.blob(job_column_count));
    list.jobs.push_back(std::move(job));
  }
  return list;
}

std::vector<JobRecord> Store::unfinished() {
  sqlite::Statement select(
      database_, std::string("SELECT ") + job_columns + " FROM jobs WHERE state<?1 ORDER BY id");
  select.bind(static_cast<std::int64_t>(JobState::succeeded));
  std::vector<JobRecord> records;
  while (select.step()) records.push_back(record_from(select));
  return records;
}

std::optional<RunRecord> Store::find_run(std::uint32_t id, std::uint32_t run) {
  sqlite::Statement select(
      database_, std::string("SELECT ") + run_columns + " FROM runs WHERE job=?1 AND run=?2");
  if (!select.bind(std::int64_t{id}, std::int64_t{run}).step()) return std::nullopt;
  return run_from(select);
}

std::vector<RunRecord> Store::runs(std::uint32_t id, std::uint32_t from, std::size_t limit) {
  sqlite::Statement select(database_,
                           std::string("SELECT ") + run_columns +
                               " FROM runs WHERE job=?1 AND run>=?2 ORDER BY run LIMIT ?3");
  select.bind(std::int64_t{id}, std::int64_t{from}, static_cast<std::int64_t>(limit));
  std::vector<RunRecord> records;
  while (select.step()) records.push_back(run_from(select));
  return records;
}

std::vector<RunRecord> Store::unfinished_runs(std::uint32_t id) {
  sqlite::Statement select(database_, std::string("SELECT ") + run_columns +
                                          " FROM runs WHERE job=?1 AND state<?2 ORDER BY run");
  select.bind(std::int64_t{id}, static_cast<std::int64_t>(JobState::succeeded));
  std::vector<RunRecord> records;
  while (select.step()) records.push_back(run_from(select));
  return records;
}

std::optional<Run> Store::first_failed_run(std::uint32_t id) {
  sqlite::Statement select(database_,
                           std::string("SELECT ") + run_columns +
                               " FROM runs WHERE job=?1 AND state=?2 ORDER BY run LIMIT 1");
  select.bind(std::int64_t{id}, static_cast<std::int64_t>(JobState::failed));
  if (!select.step()) return std::nullopt;
  return run_from(select).run;
}

void Store::each_summary(std::uint32_t id,
                         const std::function<void(std::uint32_t, std::string_view)>& visit) {
  sqlite::Statement select(
      database_, "SELECT run, summary_json FROM runs WHERE job=?1 AND state=?2 ORDER BY run");
  select.bind(std::int64_t{id}, static_cast<std::int64_t>(JobState::succeeded));
  while (select.step()) visit(unsigned_at(select, 0), select.text(1));
}

std::string Store::table(std::uint32_t id) {
  sqlite::Statement select(database_, "SELECT summary_json FROM jobs WHERE id=?1");
  return select.bind(std::int64_t{id}).step() ? std::string(select.text(0)) : std::string();
}

void Store::set_table(std::uint32_t id, std::string_view json) {
  sqlite::Statement(database_, "UPDATE jobs SET summary_json=?2 WHERE id=?1")
      .bind(std::int64_t{id}, json)
      .run();
}

EventList Store::events(std::uint32_t id, const EventQuery& query) {
  const std::string sql =
      std::string("SELECT first_sequence, last_sequence, kind, data, run FROM events") +
      " WHERE job=?1 AND last_sequence>=?2 AND " + (query.kind ? "kind=?3" : "?3=0") + " AND " +
      (query.run ? "run=?4" : "?4=0") + " ORDER BY last_sequence";
  sqlite::Statement select(database_, sql);
  select.bind(std::int64_t{id}, static_cast<std::int64_t>(query.from),
              static_cast<std::int64_t>(query.kind.value_or(EventKind{})),
              std::int64_t{query.run.value_or(0)});
  EventList list;
  bool cut = false;
  while (!cut && select.step()) {
    std::vector<Event> row;
    if (static_cast<EventKind>(select.integer(2)) == EventKind::point) {
      row = decode_points(select.blob(3), static_cast<std::uint64_t>(select.integer(0)));
      for (Event& event : row) event.run = unsigned_at(select, 4);
    } else {
      row.push_back(decode_event(select.blob(3)));
    }
    for (Event& event : row) {
      if (event.sequence < query.from) continue;
      cut = list.events.size() == query.limit;
      if (cut) break;
      list.events.push_back(std::move(event));
    }
  }
  if (cut) {
    list.next_sequence = list.events.back().sequence + 1;
  } else {
    sqlite::Statement last(database_, "SELECT last_sequence FROM jobs WHERE id=?1");
    const auto stored = last.bind(std::int64_t{id}).step() ? last.integer(0) : std::int64_t{0};
    list.next_sequence = std::max(query.from, static_cast<std::uint64_t>(stored) + 1);
  }
  return list;
}

}  // namespace pipewright
