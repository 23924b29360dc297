// The tables of the store, and what each version of them changed.
#pragma once

namespace pipewright {

inline constexpr const char* schema = R"(
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
    objective_last REAL,
    objective_best REAL,
    last_sequence INTEGER NOT NULL DEFAULT 0,
    runs INTEGER NOT NULL,
    runs_under_way INTEGER NOT NULL DEFAULT 0,
    runs_succeeded INTEGER NOT NULL DEFAULT 0,
    runs_failed INTEGER NOT NULL DEFAULT 0,
    runs_cancelled INTEGER NOT NULL DEFAULT 0,
    next_run INTEGER NOT NULL DEFAULT 0,
    summary_json TEXT NOT NULL DEFAULT '');
  CREATE INDEX jobs_by_state ON jobs(state, id);
  CREATE TABLE runs(
    job INTEGER NOT NULL,
    run INTEGER NOT NULL,
    state INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    message TEXT NOT NULL,
    started_unix_ms INTEGER NOT NULL,
    ended_unix_ms INTEGER NOT NULL,
    progress BLOB NOT NULL,
    objective_last REAL,
    objective_best REAL,
    point_count INTEGER NOT NULL,
    pool TEXT NOT NULL,
    ranks TEXT NOT NULL,
    summary_json TEXT NOT NULL,
    PRIMARY KEY(job, run));
  CREATE TABLE events(
    job INTEGER NOT NULL,
    run INTEGER NOT NULL,
    first_sequence INTEGER NOT NULL,
    last_sequence INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    data BLOB NOT NULL);
  CREATE UNIQUE INDEX events_by_sequence ON events(job, last_sequence);
  CREATE INDEX events_by_kind ON events(job, kind, last_sequence);
  CREATE INDEX events_by_run ON events(job, run, last_sequence);)";

inline constexpr const char* since_version_3 = R"(
  ALTER TABLE jobs ADD COLUMN idempotency_key TEXT;
  CREATE INDEX jobs_by_end ON jobs(ended_unix_ms, id);
  CREATE UNIQUE INDEX jobs_by_key ON jobs(idempotency_key) WHERE idempotency_key IS NOT NULL;
  PRAGMA user_version = 3;)";

inline constexpr const char* since_version_4 = R"(
  ALTER TABLE jobs ADD COLUMN user TEXT NOT NULL DEFAULT 'admin';
  DROP INDEX jobs_by_key;
  CREATE UNIQUE INDEX jobs_by_key ON jobs(user, idempotency_key) WHERE idempotency_key IS NOT NULL;
  PRAGMA user_version = 4;)";

inline constexpr const char* since_version_5 = R"(
  ALTER TABLE jobs ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
  CREATE TABLE point_summaries(
    job INTEGER NOT NULL,
    run INTEGER NOT NULL,
    series INTEGER NOT NULL,
    first_index INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY(job, run, series, first_index)) WITHOUT ROWID;
  PRAGMA user_version = 5;)";

inline constexpr const char* since_version_6 = R"(
  ALTER TABLE jobs ADD COLUMN last_stage_loss REAL;
  ALTER TABLE runs ADD COLUMN last_stage_loss REAL;
  PRAGMA user_version = 6;)";

// Summaries know when their points were taken.
inline constexpr const char* since_version_7 = "PRAGMA user_version = 7";

// JSON as of to_value(makers).
inline constexpr const char* since_version_8 = R"(
  ALTER TABLE runs ADD COLUMN makers TEXT NOT NULL DEFAULT '[]';
  PRAGMA user_version = 8;)";

}  // namespace pipewright
