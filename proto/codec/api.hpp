// Plain forms of what clients and the daemon say to each other (job.proto), and their encoding.
// This folder is the only code that sees generated classes; everybody else uses these.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/value.hpp"
#include "proto/codec/maker.hpp"

namespace pipewright {

/// How a body is written: protobuf (application/x-protobuf) or protobuf's JSON form.
enum class WireFormat { protobuf, json };

enum class JobState {
  queued = 1,
  starting = 2,
  running = 3,
  succeeded = 4,
  failed = 5,
  cancelled = 6
};
std::string_view name_of(JobState state);  // "QUEUED", ...
constexpr bool is_final(JobState state) {
  return state >= JobState::succeeded;
}

struct RunCounts {
  std::uint32_t total = 0, under_way = 0, succeeded = 0, failed = 0, cancelled = 0;
  std::uint32_t ended() const { return succeeded + failed + cancelled; }
  friend bool operator==(const RunCounts&, const RunCounts&) = default;
};

struct Progress {
  std::int64_t ticks_done = 0, ticks_total = 0;
  std::int64_t updates_done = 0, updates_total = 0;
  std::int64_t microbatches_done = 0, microbatches_total = 0;
  RunCounts runs;  // of a job only
  friend bool operator==(const Progress&, const Progress&) = default;
};

/// The newest checkpoint of a run: from where it can go on, and what that reads.
struct CheckpointInfo {
  std::int64_t tick = 0;
  std::uint64_t bytes = 0;
  std::int64_t stored_unix_ms = 0;
  friend bool operator==(const CheckpointInfo&, const CheckpointInfo&) = default;
};

struct Job {
  std::uint32_t id = 0;
  Value spec;  // the job file's tree: {name, objective: {kind: {...}}, ...}
  JobState state = JobState::queued;
  std::string message;
  std::uint32_t attempt = 0;
  std::int64_t submitted_unix_ms = 0, started_unix_ms = 0, ended_unix_ms = 0;
  Progress progress;
  std::optional<double> objective_last, objective_best;
  std::uint64_t last_sequence = 0;
  std::string pool;
  std::vector<std::uint32_t> ranks;
  std::string summary_json;
  std::string user;   // the name of the token that it was submitted with
  std::string waits;  // why its next run has not started
  std::optional<double> last_stage_loss;
  std::vector<Maker> makers;  // of its attempts, each once
  std::optional<CheckpointInfo> checkpoint;
};

struct Run {
  std::uint32_t job = 0;
  std::uint32_t number = 0;
  JobState state = JobState::queued;
  std::string message;
  std::uint32_t attempt = 0;
  std::int64_t started_unix_ms = 0, ended_unix_ms = 0;
  Progress progress;
  std::optional<double> objective_last, objective_best;
  std::string pool;
  std::vector<std::uint32_t> ranks;
  std::string summary_json;
  Value::Map swept;  // dotted path and value
  std::uint64_t seed = 0;
  std::optional<double> last_stage_loss;
  std::vector<Maker> makers;  // of its attempts, each once
  std::optional<CheckpointInfo> checkpoint;
};

struct RunList {
  std::vector<Run> runs;
  std::uint32_t next_from = 0;
};

struct JobList {
  std::vector<Job> jobs;
  std::uint32_t next_before = 0;
};

struct SubmitReply {
  std::uint32_t id = 0;
};

enum class Series {
  objective = 1,
  last_stage_loss = 2,
  gradient_norm_sq = 3,
  gradient_norm_sq_mean = 4,
  bound = 5,
  gap = 6,
  validation = 7
};

struct Point {
  Series series = Series::objective;
  std::int64_t tick = 0;
  std::int64_t updates = 0;     // all but the loss
  std::int64_t microbatch = 0;  // last-stage loss
  double value = 0;
};

enum class Severity { info = 1, warning = 2, error = 3 };

struct LogLine {
  Severity severity = Severity::info;
  std::string text;
};

struct StateChange {
  JobState state = JobState::queued;
  std::string message;
  std::uint32_t attempt = 0;
};

/// Of a run of a job of many.
struct RunStateChange : StateChange {};

struct Event {
  std::uint64_t sequence = 0;
  std::int64_t time_unix_ms = 0;
  std::variant<StateChange, Point, LogLine, RunStateChange> what;
  std::uint32_t run = 0;  // of everything but a StateChange
};

struct EventList {
  std::vector<Event> events;
  std::uint64_t next_sequence = 0;
};

struct Heartbeat {};
struct LiveFromHere {
  Job job;
};
struct Closing {
  std::string reason;
};
struct JobEnded {
  Job job;
};
using StreamFrame = std::variant<EventList, LiveFromHere, Progress, Heartbeat, Closing, JobEnded>;

struct FileInfo {
  std::string name;
  std::uint64_t bytes = 0;
};
struct FileList {
  std::vector<FileInfo> files;
};

struct PoolInfo {
  std::string name;
  std::vector<std::string> rank_hosts;
  std::vector<std::uint32_t> rank_jobs;
  std::int64_t attached_unix_ms = 0;
  std::int64_t heartbeat_unix_ms = 0;
  std::string program_version;
  bool local = false;
  std::string state;
  std::string slurm_job = {};
  std::int64_t lease_ends_unix_ms = 0;  // of one that is away
};
struct PoolList {
  std::vector<PoolInfo> pools;
};

struct ErrorReply {
  std::string error;
  std::string path;
};
struct Health {
  std::string status;
  std::string version;
};

/// A job tree as a JobSpec message. The tree need not have been checked.
struct JobSpecBody {
  Value spec;
};

// encode<T>: the bytes of a message. decode<T>: throws ProtocolError ("... is not a valid X: why")
// for anything that is not one; unknown JSON fields are refused, unknown protobuf fields ignored.
// Defined for JobSpecBody, Job, JobList, Run, RunList, SubmitReply, EventList, StreamFrame,
// FileList, PoolList, ErrorReply, Health and Progress.
template <class T>
std::string encode(const T& message, WireFormat format);
template <class T>
T decode(std::string_view bytes, WireFormat format);

/// One event as bytes for the store (protobuf).
std::string encode_event(const Event& event);
Event decode_event(std::string_view bytes);

}  // namespace pipewright
