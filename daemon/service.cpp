#include "daemon/service.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>

#include "daemon/jobs/ranks.hpp"

namespace pipewright {
namespace {

constexpr std::size_t events_per_frame_max = 500;

std::int64_t unix_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

jobs::Queue::Time steady_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now);
}

}  // namespace

Service::Service(const std::filesystem::path& data_dir, ServiceLimits limits)
    : limits_(limits),
      store_(data_dir / "pipewright.db"),
      files_(data_dir / "jobs"),
      journal_(store_),
      queue_(limits.queue) {
  for (const JobRecord& record : store_.unfinished()) {
    for (const jobs::Effect& effect :
         queue_.handle(jobs::JobRestored{record.job.id, record.ranks_wanted, record.job.state,
                                         record.job.attempt, record.cancel_asked},
                       steady_ms())) {
      perform(effect);
    }
  }
  publish(journal_.commit());
}

JobId Service::submit(const Value& checked) {
  if (queue_.full()) {
    throw QueueFull(std::to_string(limits_.queue.jobs_max) +
                    " jobs have not ended; no more are taken until some have");
  }
  const int ranks = ranks_wanted(checked);
  const JobId id = store_.add_job(checked, ranks, unix_ms());
  spdlog::info("job accepted id={} ranks={}", id, ranks);
  put(jobs::JobAccepted{id, ranks});
  return id;
}

std::optional<Job> Service::job(JobId id) {
  std::optional<Job> job = journal_.find(id);
  if (job) job->spec = store_.spec(id).value_or(Value());
  return job;
}

JobList Service::list(const ListQuery& query) {
  JobList list = store_.list(query);
  for (Job& job : list.jobs) {
    const Job* newer = journal_.under_way(job.id);
    if (newer == nullptr) continue;
    Value spec = std::move(job.spec);
    job = *newer;
    job.spec = std::move(spec);
  }
  return list;
}

Service::CancelAnswer Service::cancel(JobId id) {
  if (queue_.state_of(id)) {
    put(jobs::CancelAsked{id});
    return CancelAnswer::asked;
  }
  return store_.find(id) ? CancelAnswer::has_ended : CancelAnswer::unknown;
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
  return store_.events(id, {.from = from, .limit = events_per_frame_max, .kind = {}});
}

bool Service::has_ended(JobId id) {
  if (journal_.under_way(id) != nullptr) return false;  // its end may wait for the next commit
  const std::optional<JobRecord> record = store_.find(id);
  return record && is_final(record->job.state);
}

std::optional<Progress> Service::progress(JobId id) const {
  const Job* job = journal_.under_way(id);
  if (job == nullptr) return std::nullopt;
  return job->progress;
}

std::size_t Service::streams() const {
  std::size_t sum = 0;
  for (const auto& [id, feed] : feeds_) sum += feed.ports.size();
  return sum;
}

void Service::tick() {
  put(jobs::TimePassed{});
  if (journal_.dirty() || !acknowledgements_.empty() || !outgoing_.empty()) flush();
}

void Service::shut_down(const std::string& reason) {
  closing_ = reason;
  queue_.stop_starting();
  for (const auto& [id, pool] : pools_) pool.port->send(encode_daemon_frame(ShutDown{reason}));
  for (const auto& [id, feed] : feeds_) {
    for (StreamPort* port : feed.ports) port->wake();
  }
}

void Service::put(const jobs::Input& input) {
  bool urgent = false;
  for (const jobs::Effect& effect : queue_.handle(input, steady_ms())) {
    perform(effect);
    // That a run has begun can wait for the next tick; everything else is awaited by somebody.
    const auto* state = std::get_if<jobs::StoreState>(&effect);
    urgent = urgent || state == nullptr || state->state != JobState::running;
  }
  if (urgent) flush();
}

void Service::perform(const jobs::Effect& effect) {
  if (const auto* change = std::get_if<jobs::StoreState>(&effect)) {
    const auto pool = change->pool ? pools_.find(*change->pool) : pools_.end();
    const std::string pool_name = pool == pools_.end() ? "" : pool->second.info.name;
    spdlog::info("job state id={} state={} attempt={} pool={} message=\"{}\"", change->job,
                 name_of(change->state), change->attempt, pool_name, change->message);
    journal_.add_state(*change, pool_name, unix_ms());
  } else if (const auto* asked = std::get_if<jobs::StoreCancelAsked>(&effect)) {
    journal_.set_cancel_asked(asked->job);
  } else if (const auto* start = std::get_if<jobs::StartOnPool>(&effect)) {
    files_.abandon(start->run.job);
    file_faults_.erase(start->run.job);
    outgoing_.emplace_back(start->pool, *start);
  } else if (const auto* cancel = std::get_if<jobs::CancelOnPool>(&effect)) {
    outgoing_.emplace_back(cancel->pool, DaemonFrame(CancelRun{cancel->run}));
  } else if (const auto* end = std::get_if<jobs::AcknowledgeEnd>(&effect)) {
    outgoing_.emplace_back(end->pool, DaemonFrame(RunEndStored{end->run}));
  } else if (const auto* drop = std::get_if<jobs::DropPool>(&effect)) {
    const auto pool = pools_.extract(drop->pool);
    if (!pool.empty()) pool.mapped().port->close(drop->reason);
  }
}

/// False when the store refuses; then everything waits for the next try.
bool Service::flush() {
  try {
    publish(journal_.commit());
    store_fault_.clear();
  } catch (const StoreError& error) {
    if (store_fault_ != error.what()) spdlog::error("store refuses: {}", error.what());
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
    try {
      pool->second.port->send(encode_outgoing(outgoing));
    } catch (const Error& error) {  // the job cannot be read: its pool would wait for it for ever
      spdlog::error("pool cannot be told pool={}: {}", pool->second.info.name, error.what());
      pool->second.port->close(error.what());
    }
  }
}

std::string Service::encode_outgoing(const Outgoing& outgoing) {
  if (const auto* frame = std::get_if<DaemonFrame>(&outgoing)) return encode_daemon_frame(*frame);
  const auto& start = std::get<jobs::StartOnPool>(outgoing);
  std::optional<Value> spec = store_.spec(start.run.job);
  if (!spec) throw StoreError("job " + std::to_string(start.run.job) + " is not in the store");
  return encode_daemon_frame(StartRun{start.run, std::move(*spec), start.ranks});
}

}  // namespace pipewright
