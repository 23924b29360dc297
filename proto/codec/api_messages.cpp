#include "proto/codec/api_messages.hpp"

#include "core/base/utf8.hpp"
#include "proto/codec/wire.hpp"

namespace pipewright {

namespace {

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
// Clang needs it said: it deduces the arguments of aggregates by itself only from version 17 on.
template <typename... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

JobState state_from(int number, std::string_view message_name) {
  return wire::enum_from<JobState>(number, v1::JobState_IsValid(number), message_name, "state");
}

}  // namespace

// static, not in the namespace above: there they would hide their overloads from the header.
static void put(const StateChange& plain, v1::StateChange& message) {
  message.set_state(static_cast<v1::JobState>(plain.state));
  message.set_message(clean_utf8(plain.message));
  message.set_attempt(plain.attempt);
}

static StateChange get(const v1::StateChange& message) {
  return {state_from(message.state(), "StateChange"), message.message(), message.attempt()};
}

static void put(const FileInfo& plain, v1::FileInfo& message) {
  message.set_name(clean_utf8(plain.name));
  message.set_bytes(plain.bytes);
}

static FileInfo get(const v1::FileInfo& message) {
  return {message.name(), message.bytes()};
}

void put(const PoolInfo& plain, v1::PoolInfo& message) {
  message.set_name(clean_utf8(plain.name));
  for (const std::string& host : plain.rank_hosts) message.add_rank_hosts(clean_utf8(host));
  message.mutable_rank_jobs()->Add(plain.rank_jobs.begin(), plain.rank_jobs.end());
  message.set_attached_unix_ms(plain.attached_unix_ms);
  message.set_heartbeat_unix_ms(plain.heartbeat_unix_ms);
  message.set_program_version(clean_utf8(plain.program_version));
  message.set_local(plain.local);
  message.set_state(clean_utf8(plain.state));
  message.set_slurm_job(clean_utf8(plain.slurm_job));
  message.set_lease_ends_unix_ms(plain.lease_ends_unix_ms);
}

PoolInfo get(const v1::PoolInfo& message) {
  return {.name = message.name(),
          .rank_hosts = {message.rank_hosts().begin(), message.rank_hosts().end()},
          .rank_jobs = {message.rank_jobs().begin(), message.rank_jobs().end()},
          .attached_unix_ms = message.attached_unix_ms(),
          .heartbeat_unix_ms = message.heartbeat_unix_ms(),
          .program_version = message.program_version(),
          .local = message.local(),
          .state = message.state(),
          .slurm_job = message.slurm_job(),
          .lease_ends_unix_ms = message.lease_ends_unix_ms()};
}

namespace {

template <class Repeated, class T>
void put_all(const std::vector<T>& plain, Repeated* repeated) {
  repeated->Reserve(static_cast<int>(plain.size()));
  for (const T& element : plain) put(element, *repeated->Add());
}

template <class T, class Repeated>
std::vector<T> get_all(const Repeated& repeated) {
  std::vector<T> plain;
  plain.reserve(static_cast<std::size_t>(repeated.size()));
  for (const auto& element : repeated) plain.push_back(get(element));
  return plain;
}

}  // namespace

void put(const JobSpecBody& plain, v1::JobSpec& message) {
  put(plain.spec, message);
}

void put(const Progress& plain, v1::Progress& message) {
  message.set_ticks_done(plain.ticks_done);
  message.set_ticks_total(plain.ticks_total);
  message.set_updates_done(plain.updates_done);
  message.set_updates_total(plain.updates_total);
  message.set_microbatches_done(plain.microbatches_done);
  message.set_microbatches_total(plain.microbatches_total);
  if (plain.runs == RunCounts{}) return;
  v1::RunCounts& runs = *message.mutable_runs();
  runs.set_total(plain.runs.total);
  runs.set_under_way(plain.runs.under_way);
  runs.set_succeeded(plain.runs.succeeded);
  runs.set_failed(plain.runs.failed);
  runs.set_cancelled(plain.runs.cancelled);
}

Progress get(const v1::Progress& message) {
  const v1::RunCounts& runs = message.runs();
  return {message.ticks_done(),
          message.ticks_total(),
          message.updates_done(),
          message.updates_total(),
          message.microbatches_done(),
          message.microbatches_total(),
          {runs.total(), runs.under_way(), runs.succeeded(), runs.failed(), runs.cancelled()}};
}

void put(const Maker& plain, v1::Maker& message) {
  message.set_version(clean_utf8(plain.version));
  message.set_commit(clean_utf8(plain.commit));
  message.set_build(clean_utf8(plain.build));
  message.set_cpu_type(clean_utf8(plain.cpu_type));
}

Maker get(const v1::Maker& message) {
  return {message.version(), message.commit(), message.build(), message.cpu_type()};
}

static void put(const CheckpointInfo& plain, v1::CheckpointInfo& message) {
  message.set_tick(plain.tick);
  message.set_bytes(plain.bytes);
  message.set_stored_unix_ms(plain.stored_unix_ms);
}

static CheckpointInfo get(const v1::CheckpointInfo& message) {
  return {message.tick(), message.bytes(), message.stored_unix_ms()};
}

void put(const Job& plain, v1::Job& message) {
  message.set_id(plain.id);
  if (!plain.spec.is_null()) put(plain.spec, *message.mutable_spec());
  message.set_state(static_cast<v1::JobState>(plain.state));
  message.set_message(clean_utf8(plain.message));
  message.set_attempt(plain.attempt);
  message.set_submitted_unix_ms(plain.submitted_unix_ms);
  message.set_started_unix_ms(plain.started_unix_ms);
  message.set_ended_unix_ms(plain.ended_unix_ms);
  put(plain.progress, *message.mutable_progress());
  if (plain.objective_last) message.set_objective_last(*plain.objective_last);
  if (plain.objective_best) message.set_objective_best(*plain.objective_best);
  message.set_last_sequence(plain.last_sequence);
  message.set_pool(clean_utf8(plain.pool));
  message.mutable_ranks()->Add(plain.ranks.begin(), plain.ranks.end());
  message.set_summary_json(clean_utf8(plain.summary_json));
  message.set_user(plain.user);
  message.set_waits(plain.waits);
  if (plain.last_stage_loss) message.set_last_stage_loss(*plain.last_stage_loss);
  put_all(plain.makers, message.mutable_makers());
  if (plain.checkpoint) put(*plain.checkpoint, *message.mutable_checkpoint());
}

Job get(const v1::Job& message) {
  Job plain;
  plain.id = message.id();
  if (message.has_spec()) plain.spec = get(message.spec());
  plain.state = state_from(message.state(), "Job");
  plain.message = message.message();
  plain.attempt = message.attempt();
  plain.submitted_unix_ms = message.submitted_unix_ms();
  plain.started_unix_ms = message.started_unix_ms();
  plain.ended_unix_ms = message.ended_unix_ms();
  plain.progress = get(message.progress());
  if (message.has_objective_last()) plain.objective_last = message.objective_last();
  if (message.has_objective_best()) plain.objective_best = message.objective_best();
  plain.last_sequence = message.last_sequence();
  plain.pool = message.pool();
  plain.ranks.assign(message.ranks().begin(), message.ranks().end());
  plain.summary_json = message.summary_json();
  plain.user = message.user();
  plain.waits = message.waits();
  if (message.has_last_stage_loss()) plain.last_stage_loss = message.last_stage_loss();
  plain.makers = get_all<Maker>(message.makers());
  if (message.has_checkpoint()) plain.checkpoint = get(message.checkpoint());
  return plain;
}

void put(const JobList& plain, v1::JobList& message) {
  put_all(plain.jobs, message.mutable_jobs());
  message.set_next_before(plain.next_before);
}

JobList get(const v1::JobList& message) {
  return {get_all<Job>(message.jobs()), message.next_before()};
}

void put(const Run& plain, v1::Run& message) {
  message.set_job(plain.job);
  message.set_number(plain.number);
  message.set_state(static_cast<v1::JobState>(plain.state));
  message.set_message(clean_utf8(plain.message));
  message.set_attempt(plain.attempt);
  message.set_started_unix_ms(plain.started_unix_ms);
  message.set_ended_unix_ms(plain.ended_unix_ms);
  put(plain.progress, *message.mutable_progress());
  if (plain.objective_last) message.set_objective_last(*plain.objective_last);
  if (plain.objective_best) message.set_objective_best(*plain.objective_best);
  if (plain.last_stage_loss) message.set_last_stage_loss(*plain.last_stage_loss);
  message.set_pool(clean_utf8(plain.pool));
  message.mutable_ranks()->Add(plain.ranks.begin(), plain.ranks.end());
  message.set_summary_json(clean_utf8(plain.summary_json));
  put(plain.swept, *message.mutable_swept());
  message.set_seed(plain.seed);
  put_all(plain.makers, message.mutable_makers());
  if (plain.checkpoint) put(*plain.checkpoint, *message.mutable_checkpoint());
}

Run get(const v1::Run& message) {
  Run plain;
  plain.job = message.job();
  plain.number = message.number();
  plain.state = state_from(message.state(), "Run");
  plain.message = message.message();
  plain.attempt = message.attempt();
  plain.started_unix_ms = message.started_unix_ms();
  plain.ended_unix_ms = message.ended_unix_ms();
  plain.progress = get(message.progress());
  if (message.has_objective_last()) plain.objective_last = message.objective_last();
  if (message.has_objective_best()) plain.objective_best = message.objective_best();
  if (message.has_last_stage_loss()) plain.last_stage_loss = message.last_stage_loss();
  plain.pool = message.pool();
  plain.ranks.assign(message.ranks().begin(), message.ranks().end());
  plain.summary_json = message.summary_json();
  plain.swept = get(message.swept());
  plain.seed = message.seed();
  plain.makers = get_all<Maker>(message.makers());
  if (message.has_checkpoint()) plain.checkpoint = get(message.checkpoint());
  return plain;
}

void put(const RunList& plain, v1::RunList& message) {
  put_all(plain.runs, message.mutable_runs());
  message.set_next_from(plain.next_from);
}

RunList get(const v1::RunList& message) {
  return {get_all<Run>(message.runs()), message.next_from()};
}

void put(const SubmitReply& plain, v1::SubmitReply& message) {
  message.set_id(plain.id);
}
SubmitReply get(const v1::SubmitReply& message) {
  return {message.id()};
}

void put(const Point& plain, v1::Point& message) {
  message.set_series(static_cast<v1::Point::Series>(plain.series));
  message.set_tick(plain.tick);
  message.set_updates(plain.updates);
  message.set_microbatch(plain.microbatch);
  message.set_value(plain.value);
}

Point get(const v1::Point& message) {
  const int series = message.series();
  return {wire::enum_from<Series>(series, v1::Point::Series_IsValid(series), "Point", "series"),
          message.tick(), message.updates(), message.microbatch(), message.value()};
}

void put(const LogLine& plain, v1::LogLine& message) {
  message.set_severity(static_cast<v1::LogLine::Severity>(plain.severity));
  message.set_text(clean_utf8(plain.text));
}

LogLine get(const v1::LogLine& message) {
  const int severity = message.severity();
  return {wire::enum_from<Severity>(severity, v1::LogLine::Severity_IsValid(severity), "LogLine",
                                    "severity"),
          message.text()};
}

void put(const Event& plain, v1::Event& message) {
  message.set_sequence(plain.sequence);
  message.set_time_unix_ms(plain.time_unix_ms);
  std::visit(Overloaded{[&](const StateChange& change) { put(change, *message.mutable_state()); },
                        [&](const Point& point) { put(point, *message.mutable_point()); },
                        [&](const LogLine& line) { put(line, *message.mutable_log()); },
                        [&](const RunStateChange& change) {
                          put(static_cast<const StateChange&>(change),
                              *message.mutable_run_state());
                        }},
             plain.what);
  message.set_run(plain.run);
}

Event get(const v1::Event& message) {
  Event plain{message.sequence(), message.time_unix_ms(), {}, message.run()};
  switch (message.what_case()) {
    case v1::Event::kState:
      plain.what = get(message.state());
      break;
    case v1::Event::kPoint:
      plain.what = get(message.point());
      break;
    case v1::Event::kLog:
      plain.what = get(message.log());
      break;
    case v1::Event::kRunState:
      plain.what = RunStateChange{get(message.run_state())};
      break;
    default:
      wire::refuse("Event", "it is neither state, point nor log");
  }
  return plain;
}

void put(const EventList& plain, v1::EventList& message) {
  put_all(plain.events, message.mutable_events());
  message.set_next_sequence(plain.next_sequence);
}

EventList get(const v1::EventList& message) {
  return {get_all<Event>(message.events()), message.next_sequence()};
}

void put(const StreamFrame& plain, v1::StreamFrame& message) {
  std::visit(
      Overloaded{
          [&](const EventList& events) { put(events, *message.mutable_events()); },
          [&](const LiveFromHere& live) { put(live.job, *message.mutable_live_from_here()); },
          [&](const Progress& progress) { put(progress, *message.mutable_progress()); },
          [&](const Heartbeat&) { message.mutable_heartbeat(); },
          [&](const Closing& closing) { message.set_closing(clean_utf8(closing.reason)); },
          [&](const JobEnded& ended) { put(ended.job, *message.mutable_ended()); }},
      plain);
}

StreamFrame get(const v1::StreamFrame& message) {
  switch (message.what_case()) {
    case v1::StreamFrame::kEvents:
      return get(message.events());
    case v1::StreamFrame::kLiveFromHere:
      return LiveFromHere{get(message.live_from_here())};
    case v1::StreamFrame::kProgress:
      return get(message.progress());
    case v1::StreamFrame::kHeartbeat:
      return Heartbeat{};
    case v1::StreamFrame::kClosing:
      return Closing{message.closing()};
    case v1::StreamFrame::kEnded:
      return JobEnded{get(message.ended())};
    default:
      wire::refuse("StreamFrame", "it holds none of the frames that are known");
  }
}

void put(const FileList& plain, v1::FileList& message) {
  put_all(plain.files, message.mutable_files());
}
FileList get(const v1::FileList& message) {
  return {get_all<FileInfo>(message.files())};
}

void put(const PoolList& plain, v1::PoolList& message) {
  put_all(plain.pools, message.mutable_pools());
}
PoolList get(const v1::PoolList& message) {
  return {get_all<PoolInfo>(message.pools())};
}

void put(const ErrorReply& plain, v1::ErrorReply& message) {
  message.set_error(clean_utf8(plain.error));
  message.set_path(clean_utf8(plain.path));
}
ErrorReply get(const v1::ErrorReply& message) {
  return {message.error(), message.path()};
}

void put(const Health& plain, v1::Health& message) {
  message.set_status(clean_utf8(plain.status));
  message.set_version(clean_utf8(plain.version));
}
Health get(const v1::Health& message) {
  return {message.status(), message.version()};
}

}  // namespace pipewright
