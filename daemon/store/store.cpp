#include "daemon/store/store.hpp"

#include <algorithm>

#include "core/base/text.hpp"
#include "daemon/store/point_blob.hpp"

namespace pipewright {
namespace {

// Points of one row at most: what a reader decodes to get at one of them.
constexpr std::size_t points_per_row_max = 4096;

constexpr const char* schema = R"(
  CREATE TABLE jobs(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    spec BLOB NOT NULL,
    ranks_wanted INTEGER NOT NULL,
    state INTEGER NOT NULL,
    cancel_asked INTEGER NOT NULL DEFAULT 0,
    attempt INTEGER NOT NULL DEFAULT 0,
    message TEXT NOT NULL DEFAULT '',
    submitted_unix_ms INTEGER NOT NULL,
    started_unix_ms INTEGER NOT NULL DEFAULT 0,
    ended_unix_ms INTEGER NOT NULL DEFAULT 0,
    progress BLOB NOT NULL DEFAULT x'',
    objective_last REAL,
    objective_best REAL,
    last_sequence INTEGER NOT NULL DEFAULT 0,
    point_count INTEGER NOT NULL DEFAULT 0,
    pool TEXT NOT NULL DEFAULT '',
    ranks TEXT NOT NULL DEFAULT '',
    summary_json TEXT NOT NULL DEFAULT '');
  CREATE INDEX jobs_by_state ON jobs(state, id);
  CREATE TABLE events(
    job INTEGER NOT NULL,
    first_sequence INTEGER NOT NULL,
    last_sequence INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    data BLOB NOT NULL);
  CREATE UNIQUE INDEX events_by_sequence ON events(job, last_sequence);
  CREATE INDEX events_by_kind ON events(job, kind, last_sequence);
  PRAGMA user_version = 1;)";

constexpr const char* job_columns =
    "id, state, message, attempt, submitted_unix_ms, started_unix_ms, ended_unix_ms, progress,"
    " objective_last, objective_best, last_sequence, pool, ranks, summary_json, point_count,"
    " ranks_wanted, cancel_asked";

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

/// From a row that begins with `job_columns`.
JobRecord record_from(const sqlite::Statement& row) {
  JobRecord record;
  Job& job = record.job;
  job.id = static_cast<std::uint32_t>(row.integer(0));
  job.state = static_cast<JobState>(row.integer(1));
  job.message = row.text(2);
  job.attempt = static_cast<std::uint32_t>(row.integer(3));
  job.submitted_unix_ms = row.integer(4);
  job.started_unix_ms = row.integer(5);
  job.ended_unix_ms = row.integer(6);
  job.progress = decode<Progress>(row.blob(7), WireFormat::protobuf);
  job.objective_last = row.real(8);
  job.objective_best = row.real(9);
  job.last_sequence = static_cast<std::uint64_t>(row.integer(10));
  job.pool = row.text(11);
  job.ranks = ranks_from(row.text(12));
  job.summary_json = row.text(13);
  record.point_count = static_cast<std::uint64_t>(row.integer(14));
  record.ranks_wanted = static_cast<int>(row.integer(15));
  record.cancel_asked = row.integer(16) != 0;
  return record;
}

Value spec_from(std::string_view blob) {
  return decode<JobSpecBody>(blob, WireFormat::protobuf).spec;
}

}  // namespace

Store::Store(const std::filesystem::path& file) : database_(file) {
  database_.execute("PRAGMA journal_mode = WAL");
  database_.execute("PRAGMA synchronous = FULL");
  const std::int64_t version = database_.pragma("user_version");
  if (version == 0) {
    sqlite::Transaction transaction(database_);
    database_.execute(schema);
    transaction.commit();
  } else if (version != schema_version) {
    throw StoreError(file.string() + ": was written by another version of pipewrightd (schema " +
                     std::to_string(version) + "; this one knows " +
                     std::to_string(schema_version) + ")");
  }
}

std::uint32_t Store::add_job(const Value& spec, int ranks_wanted, std::int64_t now_unix_ms) {
  sqlite::Transaction transaction(database_);
  const std::string bytes = encode(JobSpecBody{spec}, WireFormat::protobuf);
  sqlite::Statement insert(database_,
                           "INSERT INTO jobs(spec, ranks_wanted, state, submitted_unix_ms,"
                           " last_sequence) VALUES(?1, ?2, ?3, ?4, 1)");
  insert
      .bind(sqlite::Blob{bytes}, std::int64_t{ranks_wanted},
            static_cast<std::int64_t>(JobState::queued), now_unix_ms)
      .run();
  const auto id = static_cast<std::uint32_t>(database_.last_insert_id());
  const Event queued{.sequence = 1,
                     .time_unix_ms = now_unix_ms,
                     .what = StateChange{.state = JobState::queued, .message = {}, .attempt = 0}};
  insert_events(id, {&queued, 1});
  transaction.commit();
  return id;
}

void Store::write(std::span<const JobWrite> writes) {
  sqlite::Transaction transaction(database_);
  sqlite::Statement update(
      database_,
      "UPDATE jobs SET state=?2, message=?3, attempt=?4, started_unix_ms=?5, ended_unix_ms=?6,"
      " progress=?7, objective_last=?8, objective_best=?9, last_sequence=?10, pool=?11, ranks=?12,"
      " summary_json=?13, point_count=?14, cancel_asked=?15 WHERE id=?1");
  for (const JobWrite& write : writes) {
    const Job& job = write.record->job;
    const std::string progress = encode(job.progress, WireFormat::protobuf);
    update
        .bind(std::int64_t{job.id}, static_cast<std::int64_t>(job.state),
              std::string_view(job.message), std::int64_t{job.attempt}, job.started_unix_ms,
              job.ended_unix_ms, sqlite::Blob{progress}, job.objective_last, job.objective_best,
              static_cast<std::int64_t>(job.last_sequence), std::string_view(job.pool),
              std::string_view(ranks_text(job.ranks)), std::string_view(job.summary_json),
              static_cast<std::int64_t>(write.record->point_count),
              std::int64_t{write.record->cancel_asked})
        .run();
    insert_events(job.id, write.events);
  }
  transaction.commit();
}

void Store::insert_events(std::uint32_t id, std::span<const Event> events) {
  sqlite::Statement insert(database_,
                           "INSERT INTO events(job, first_sequence, last_sequence, kind, data)"
                           " VALUES(?1, ?2, ?3, ?4, ?5)");
  while (!events.empty()) {
    const EventKind kind = kind_of(events.front());
    std::size_t count = 1;
    if (kind == EventKind::point) {
      while (count < events.size() && count < points_per_row_max &&
             kind_of(events[count]) == EventKind::point) {
        ++count;
      }
    }
    const std::span<const Event> row = events.first(count);
    const std::string data =
        kind == EventKind::point ? encode_points(row) : encode_event(row.front());
    insert
        .bind(std::int64_t{id}, static_cast<std::int64_t>(row.front().sequence),
              static_cast<std::int64_t>(row.back().sequence), static_cast<std::int64_t>(kind),
              sqlite::Blob{data})
        .run();
    events = events.subspan(count);
  }
}

std::optional<JobRecord> Store::find(std::uint32_t id) {
  sqlite::Statement select(database_,
                           std::string("SELECT ") + job_columns + " FROM jobs WHERE id=?1");
  if (!select.bind(std::int64_t{id}).step()) return std::nullopt;
  return record_from(select);
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
    list.jobs.push_back(record_from(select).job);
    list.jobs.back().spec = spec_from(select.blob(17));
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

EventList Store::events(std::uint32_t id, const EventQuery& query) {
  const std::string sql =
      std::string("SELECT first_sequence, last_sequence, kind, data FROM events WHERE job=?1") +
      (query.kind ? " AND kind=?3" : "") + " AND last_sequence>=?2 ORDER BY last_sequence";
  sqlite::Statement select(database_, sql);
  if (query.kind) {
    select.bind(std::int64_t{id}, static_cast<std::int64_t>(query.from),
                static_cast<std::int64_t>(*query.kind));
  } else {
    select.bind(std::int64_t{id}, static_cast<std::int64_t>(query.from));
  }
  EventList list;
  bool cut = false;
  while (!cut && select.step()) {
    std::vector<Event> row;
    if (static_cast<EventKind>(select.integer(2)) == EventKind::point) {
      row = decode_points(select.blob(3), static_cast<std::uint64_t>(select.integer(0)));
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
