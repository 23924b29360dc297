// Jobs and their events on disk: SQLite in WAL mode with synchronous=FULL, so what a call has
// returned from survives a crash of the machine. Consecutive points share a row. Every call may
// throw StoreError; then nothing of it is stored.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "daemon/store/sqlite.hpp"
#include "proto/codec/api.hpp"

namespace pipewright {

/// A job as it is stored, without its spec.
struct JobRecord {
  Job job;
  std::uint64_t point_count = 0;  // points stored; the first of a run has the index 0
  int ranks_wanted = 1;
  bool cancel_asked = false;
};

/// What one transaction writes of a job: its record, and events that follow those stored.
struct JobWrite {
  const JobRecord* record = nullptr;
  std::span<const Event> events;
};

enum class EventKind : std::uint8_t { state = 1, point = 2, log = 3 };

struct EventQuery {
  std::uint64_t from = 1;
  std::size_t limit = 1000;
  std::optional<EventKind> kind;
};

struct ListQuery {
  std::size_t limit = 50;
  std::uint32_t before = 0;  // 0: from the newest on
  std::optional<JobState> state;
};

class Store {
 public:
  static constexpr std::int64_t schema_version = 1;

  explicit Store(const std::filesystem::path& file);

  /// The id of a new job that is QUEUED; that is its first event.
  std::uint32_t add_job(const Value& spec, int ranks_wanted, std::int64_t now_unix_ms);
  void write(std::span<const JobWrite> writes);

  std::optional<JobRecord> find(std::uint32_t id);
  std::optional<Value> spec(std::uint32_t id);
  /// Newest first, with their specs.
  JobList list(const ListQuery& query);
  /// Jobs that have not ended, in the order of their ids.
  std::vector<JobRecord> unfinished();
  EventList events(std::uint32_t id, const EventQuery& query);

 private:
  void insert_events(std::uint32_t id, std::span<const Event> events);

  sqlite::Database database_;
};

}  // namespace pipewright
