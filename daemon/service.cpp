#include "daemon/service.hpp"

#include <algorithm>
#include <chrono>

#include "core/train/run_table.hpp"
#include "core/train/stored_job.hpp"
#include "daemon/clock.hpp"
#include "daemon/log.hpp"
#include "proto/codec/json.hpp"

namespace pipewright {
namespace {

constexpr std::size_t events_per_frame_max = 500;

}  // namespace

Service::Service(const std::filesystem::path& data_dir, ServiceLimits limits)
    : limits_(limits),
      store_(data_dir / "pipewright.db"),
      files_(data_dir / "jobs"),
      journal_(store_),
      queue_(limits.queue) {
  for (const JobRecord& record : store_.unfinished()) handle(restored(record));
  publish(journal_.commit());
  files_.remove_all_but(store_.ids());
}

/// Runs that were under way wait for their pools, of which only the names are known.
jobs::JobRestored Service::restored(const JobRecord& record) {
  const Job& job = record.job;
  jobs::JobRestored restored{.job = job.id,
                             .ranks_wanted = record.ranks_wanted,
                             .state = job.state,
                             .message = job.message,
                             .attempt = job.attempt,
                             .counts = job.progress.runs,
                             .next_run = record.next_run,
                             .runs = {},
                             .first_failed = {},
                             .cancel_asked = record.cancel_asked,
                             .user = job.user,
                             .priority = record.priority};
  for (const RunRecord& run : store_.unfinished_runs(job.id)) {
    restored.runs.push_back(this->restored(run));
  }
  if (const std::optional<Run> failed = store_.first_failed_run(job.id)) {
    restored.first_failed = jobs::FailedRun{failed->number, failed->message};
  }
  return restored;
}

Service::RemoveAnswer Service::remove(JobId id) {
  if (queue_.state_of(id)) return RemoveAnswer::has_not_ended;
  if (!store_.contains(id)) return RemoveAnswer::unknown;
  if (!has_ended(id)) return RemoveAnswer::has_not_ended;  // its end waits for the disk
  delete_ended(id);
  return RemoveAnswer::removed;
}

/// From the store first: files that a crash leaves behind are found at the next start.
void Service::delete_ended(JobId id) {
  store_.remove(id);
  std::erase_if(runs_of_, [&](const auto& kept) { return kept.first == id; });
  wake_streams(id);
  log_info("job deleted", {{"job", id}});
  files_.remove(id);
}

void Service::retain() {
  const Retention& retention = limits_.retention;
  if (!retention.age_max && !retention.bytes_max) return;
  const jobs::Queue::Time now = steady_ms();
  if (retained_ && now - *retained_ < retention.check_interval) return;
  retained_ = now;
  if (retention.age_max) {
    const std::int64_t oldest =
        unix_ms() -
        std::chrono::duration_cast<std::chrono::milliseconds>(*retention.age_max).count();
    while (const std::optional<Store::Ended> first = store_.ended_first()) {
      if (first->ended_unix_ms >= oldest || !has_ended(first->id)) break;
      delete_ended(first->id);
    }
  }
  if (retention.bytes_max) {
    while (store_.bytes_used() + files_.bytes_used() > *retention.bytes_max) {
      const std::optional<Store::Ended> first = store_.ended_first();
      if (!first || !has_ended(first->id)) return;
      delete_ended(first->id);
    }
  }
}

std::optional<Job> Service::job(JobId id) {
  std::optional<Job> job = journal_.find(id);
  if (!job) return job;
  job->spec = store_.spec(id).value_or(Value());
  job->waits = queue_.why_waits(id);
  if (job->progress.runs.total == 1 && !is_final(job->state)) {
    job->checkpoint = checkpoints_of({id, 0, 0}).newest_info();
  }
  if (job->progress.runs.total > 1 && has_ended(id)) add_table(*job);
  return job;
}

/// Made when somebody asks for it first: that of many runs takes its time.
void Service::add_table(Job& job) {
  job.summary_json = store_.table(job.id);
  if (!job.summary_json.empty()) return;
  const JobRuns& runs = runs_of(job.id);
  std::vector<Value> summaries(runs.size());
  store_.each_summary(job.id, [&](std::uint32_t run, std::string_view json) {
    summaries.at(run) = table_part(value_from_json(json));
  });
  job.summary_json = to_json(run_table(runs, summaries));
  store_.set_table(job.id, job.summary_json);
}

const JobRuns& Service::runs_of(JobId id) {
  static constexpr std::size_t kept_max = 8;
  const auto at = std::find_if(runs_of_.begin(), runs_of_.end(),
                               [&](const auto& kept) { return kept.first == id; });
  if (at != runs_of_.end()) {
    runs_of_.splice(runs_of_.begin(), runs_of_, at);
    return runs_of_.front().second;
  }
  const std::optional<Value> spec = store_.spec(id);
  if (!spec) throw StoreError("job " + std::to_string(id) + " is not in the store");
  runs_of_.emplace_front(id, JobRuns(restored_job(*spec)));
  if (runs_of_.size() > kept_max) runs_of_.pop_back();
  return runs_of_.front().second;
}

RunList Service::runs(JobId id, std::uint32_t from, std::size_t limit) {
  const Job job = journal_.find(id).value();
  const JobRuns& runs = runs_of(id);
  std::map<std::uint32_t, Run> started;
  for (RunRecord& record : store_.runs(id, from, limit)) {
    const std::uint32_t number = record.run.number;
    started.emplace(number, std::move(record.run));
  }
  RunList list;
  for (std::uint32_t number = from; number < runs.size() && list.runs.size() < limit; ++number) {
    Run& run = list.runs.emplace_back();
    if (const Run* newer = journal_.run_under_way(id, number)) {
      run = *newer;
    } else if (const auto stored = started.find(number); stored != started.end()) {
      run = std::move(stored->second);
    } else {  // never started: dropped, or yet to come
      run.job = id;
      run.number = number;
      run.state = is_final(job.state) ? JobState::cancelled : JobState::queued;
    }
    run.swept = runs.swept(number / runs.repeats());
    run.seed = runs.seed(number);
    if (run.attempt > 0 && !is_final(run.state)) {
      run.checkpoint = checkpoints_of({id, number, 0}).newest_info();
    }
  }
  const auto next = from + static_cast<std::uint32_t>(list.runs.size());
  list.next_from = list.runs.empty() || next >= runs.size() ? 0 : next;
  return list;
}

JobList Service::list(const ListQuery& query) {
  JobList list = store_.list(query);
  for (Job& job : list.jobs) {
    if (std::optional<Job> newer = journal_.under_way(job.id)) {
      newer->spec = std::move(job.spec);
      newer->makers.clear();
      job = std::move(*newer);
    }
    job.waits = queue_.why_waits(job.id);
  }
  return list;
}

Service::CancelAnswer Service::cancel(JobId id) {
  if (queue_.state_of(id)) {
    put(jobs::CancelAsked{id});
    return CancelAnswer::asked;
  }
  return store_.contains(id) ? CancelAnswer::has_ended : CancelAnswer::unknown;
}

void Service::unsubscribe(JobId id, StreamPort& port) {
  const auto at = feeds_.find(id);
  if (at == feeds_.end()) return;
  at->second.ports.erase(&port);
  if (at->second.ports.empty()) feeds_.erase(at);
}

EventList Service::next_events(JobId id, std::uint64_t from) {
  const auto feed = feeds_.find(id);
  if (feed != feeds_.end() && feed->second.newest) {
    const EventList& newest = *feed->second.newest;
    const std::uint64_t first = newest.events.front().sequence;
    if (from >= newest.next_sequence) return {{}, from};
    if (from >= first) {
      const auto begin = newest.events.begin() + static_cast<std::ptrdiff_t>(from - first);
      const auto count = std::min<std::ptrdiff_t>(newest.events.end() - begin,
                                                  std::ptrdiff_t{events_per_frame_max});
      return {{begin, begin + count}, from + static_cast<std::uint64_t>(count)};
    }
  }
  return store_.events(id, {.from = from, .limit = events_per_frame_max, .kind = {}, .run = {}});
}

bool Service::has_ended(JobId id) {
  if (journal_.under_way(id)) return false;  // its end may wait for the next commit
  const std::optional<JobRecord> record = store_.find(id);
  return record && is_final(record->job.state);
}

std::optional<Progress> Service::progress(JobId id) const {
  const std::optional<Job> job = journal_.under_way(id);
  if (!job) return std::nullopt;
  return job->progress;
}

std::string Service::metrics_text() {
  std::map<JobState, std::int64_t> jobs = store_.count_by_state();
  for (const JobState state : {JobState::queued, JobState::starting, JobState::running,
                               JobState::succeeded, JobState::failed, JobState::cancelled}) {
    metrics_.set_jobs(state, jobs[state]);
  }
  std::int64_t ranks = 0, busy = 0;
  for (const auto& [id, pool] : pools_) {
    const std::vector<JobId> of_rank = queue_.rank_jobs(id);
    ranks += static_cast<std::int64_t>(of_rank.size());
    busy += std::count_if(of_rank.begin(), of_rank.end(), [](JobId job) { return job != 0; });
  }
  metrics_.set_pools(static_cast<std::int64_t>(pools_.size()), ranks - busy, busy);
  metrics_.set_streams(static_cast<std::int64_t>(streams()));
  metrics_.set_store_bytes(store_.bytes_used());
  return metrics_.text();
}

std::string Service::not_ready() const {
  if (!closing_.empty()) return "the daemon is ending: " + closing_;
  if (!store_fault_.empty()) return "the store refuses: " + store_fault_;
  if (!files_fault_.empty()) return "files of runs wait for the disk: " + files_fault_;
  if (queue_.room() == 0) return "too many jobs wait";
  return {};
}

std::size_t Service::streams() const {
  std::size_t sum = 0;
  for (const auto& [id, feed] : feeds_) sum += feed.ports.size();
  return sum;
}

void Service::tick() {
  take_waiting_files();
  if (!ended_.empty()) commit();
  put(jobs::TimePassed{});
  forget_pools();
  commit();
  retain();
}

void Service::commit() {
  take_submissions();
  const bool waits = journal_.dirty() || !acknowledgements_.empty() || !outgoing_.empty();
  if (waits || !ended_.empty()) flush();
}

void Service::shut_down(const std::string& reason) {
  closing_ = reason;
  queue_.stop_starting();
  for (const auto& [id, pool] : pools_) pool.port->send(encode_daemon_frame(ShutDown{reason}));
  wake_all_streams();
}

void Service::wake_all_streams() {
  for (const auto& [id, feed] : feeds_) {
    for (StreamPort* port : feed.ports) port->wake();
  }
}

void Service::put(const jobs::Input& input) {
  if (handle(input)) flush();
}

/// True when something of it is awaited by somebody.
bool Service::handle(const jobs::Input& input) {
  bool urgent = false;
  for (const jobs::Effect& effect : queue_.handle(input, steady_ms())) {
    perform(effect);
    // That a run has begun can wait for the next tick.
    const auto* run = std::get_if<jobs::StoreRun>(&effect);
    const auto* job = std::get_if<jobs::StoreJob>(&effect);
    urgent = urgent || !((run != nullptr && run->state == JobState::running) ||
                         (job != nullptr && job->state == JobState::running));
  }
  return urgent;
}

/// Runs have ended: their files reach the disk together, and before their outcomes.
void Service::take_ends() {
  std::vector<jobs::RunOver> ended = std::exchange(ended_, {});
  std::vector<RunKey> keys;
  for (const jobs::RunOver& over : ended) {
    if (over.outcome == RunOutcome::succeeded && queue_.runs_on(over.pool, over.run)) {
      keys.emplace_back(over.run.job, over.run.run);
    }
  }
  file_faults_.merge(files_.sync(keys));
  for (jobs::RunOver& over : ended) {
    if (!queue_.runs_on(over.pool, over.run)) {  // a newer attempt may write the same files
      handle(over);
      continue;
    }
    const RunKey key{over.run.job, over.run.run};
    files_.abandon(key);
    const auto fault = file_faults_.extract(key);
    if (!fault.empty() && over.outcome == RunOutcome::succeeded) {
      over.outcome = RunOutcome::failed;
      over.message = "a file of the run could not be stored: " + fault.mapped();
      over.summary_json.clear();
    }
    handle(over);
  }
}

void Service::perform(const jobs::Effect& effect) {
  if (const auto* job = std::get_if<jobs::StoreJob>(&effect)) {
    log_debug("job state", {{"job", job->job},
                            {"state", name_of(job->state)},
                            {"runs_ended", job->counts.ended()},
                            {"runs", job->counts.total},
                            {"message", job->message}});
    journal_.add_job_state(*job, unix_ms());
  } else if (const auto* change = std::get_if<jobs::StoreRun>(&effect)) {
    const auto pool = change->pool ? pools_.find(*change->pool) : pools_.end();
    const std::string pool_name = pool == pools_.end() ? "" : pool->second.info.name;
    log_info("run state", {{"job", change->job},
                           {"run", change->run},
                           {"state", name_of(change->state)},
                           {"attempt", change->attempt},
                           {"pool", pool_name},
                           {"message", change->message}});
    journal_.add_run_state(*change, pool_name, unix_ms());
    count(*change);
    if (is_final(change->state)) checkpoints_of({change->job, change->run, 0}).clear();
  } else if (const auto* asked = std::get_if<jobs::StoreCancelAsked>(&effect)) {
    journal_.set_cancel_asked(asked->job);
  } else if (const auto* start = std::get_if<jobs::StartOnPool>(&effect)) {
    files_.abandon({start->run.job, start->run.run});
    file_faults_.erase({start->run.job, start->run.run});
    checkpoint_faults_.erase({start->run.job, start->run.run});
    outgoing_.emplace_back(start->pool, *start);
  } else if (const auto* cancel = std::get_if<jobs::CancelOnPool>(&effect)) {
    outgoing_.emplace_back(cancel->pool, DaemonFrame(CancelRun{cancel->run}));
  } else if (const auto* end = std::get_if<jobs::AcknowledgeEnd>(&effect)) {
    outgoing_.emplace_back(end->pool, DaemonFrame(RunEndStored{end->run}));
  } else if (const auto* drop = std::get_if<jobs::DropPool>(&effect)) {
    const auto pool = pools_.extract(drop->pool);
    if (pool.empty()) return;
    pool.mapped().port->close(drop->reason);
    local_pool_left_ = local_pool_left_ || pool.mapped().info.local;
    note_away(pool.key(), pool.mapped());
  }
}

void Service::count(const jobs::StoreRun& change) {
  if (is_final(change.state)) metrics_.run_ended(change.state);
  if (change.state != JobState::starting || change.attempt != 1) return;
  const std::optional<Job> job = journal_.under_way(change.job);
  if (!job) return;
  metrics_.run_waited(std::chrono::milliseconds(unix_ms() - job->submitted_unix_ms));
}

/// False when the store refuses; then everything waits for the next try.
bool Service::flush() {
  take_ends();
  try {
    const auto begin = std::chrono::steady_clock::now();
    publish(journal_.commit());
    metrics_.committed(std::chrono::steady_clock::now() - begin);
    store_fault_.clear();
  } catch (const StoreError& error) {
    metrics_.commit_failed();
    if (store_fault_ != error.what()) log_error("store refuses", {{"error", error.what()}});
    store_fault_ = error.what();
    return false;
  }
  send_outgoing();
  return true;
}

void Service::publish(const std::vector<Journal::Committed>& committed) {
  for (const Journal::Committed& news : committed) {
    const auto feed = feeds_.find(news.job);
    if (feed == feeds_.end()) continue;
    feed->second.newest = news.events;
    wake_streams(news.job);
  }
}

void Service::wake_streams(JobId id) {
  const auto feed = feeds_.find(id);
  if (feed == feeds_.end()) return;
  for (StreamPort* port : feed->second.ports) port->wake();
}

void Service::send_outgoing() {
  for (const auto& [key, next_index] : std::exchange(acknowledgements_, {})) {
    const auto pool = pools_.find(key.first);
    if (pool == pools_.end()) continue;
    pool->second.port->send(encode_daemon_frame(PointsStored{key.second, next_index}));
  }
  for (const auto& [pool_id, outgoing] : std::exchange(outgoing_, {})) {
    const auto pool = pools_.find(pool_id);
    if (pool == pools_.end()) continue;
    // The pool may have been away meanwhile, and have come back without it.
    const auto* start = std::get_if<jobs::StartOnPool>(&outgoing);
    if (start != nullptr && !queue_.runs_on(pool_id, start->run)) continue;
    try {
      pool->second.port->send(encode_outgoing(outgoing));
    } catch (const StoreError& error) {
      // The job cannot be read: its pool would wait for it for ever.
      log_error("pool cannot be told", {{"pool", pool->second.info.name}, {"error", error.what()}});
      pool->second.port->close(error.what());
    } catch (const std::exception& error) {  // what else is sent is always sendable
      fail_to_start(std::get<jobs::StartOnPool>(outgoing), error.what());
    }
  }
}

std::string Service::encode_outgoing(const Outgoing& outgoing) {
  if (const auto* frame = std::get_if<DaemonFrame>(&outgoing)) return encode_daemon_frame(*frame);
  const auto& start = std::get<jobs::StartOnPool>(outgoing);
  const Run* run = journal_.run_under_way(start.run.job, start.run.run);
  return encode_daemon_frame(
      StartRun{.run = start.run,
               .spec = runs_of(start.run.job).run(start.run.run).job,
               .ranks = start.ranks,
               .data_roots = limits_.data_roots,
               .checkpoint_files = checkpoint_for(start.run),
               .makers = run == nullptr ? std::vector<Maker>() : run->makers});
}

/// A point of a sweep that makes no job: nothing is sent to the pool.
void Service::fail_to_start(const jobs::StartOnPool& start, const std::string& why) {
  ended_.push_back({start.pool, start.run, RunOutcome::failed, why, {}});
  wake_for_news_();
}

}  // namespace pipewright
