#include "daemon/store/journal.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/check.hpp"
#include "proto/codec/provenance.hpp"

namespace pipewright {

namespace {

// Of a run: what a pool says of itself is not to fill the store.
constexpr std::size_t makers_max = 32;

/// The newest value and the least; a value that is not a number counts for the newest only.
template <class Record>
void take_objective(Record& record, double value) {
  std::optional<double>& best = record.objective_best;
  record.objective_last = value;
  if (!best || std::isnan(*best) || value < *best) best = value;
}

template <class Record>
void take_times(Record& record, JobState state, std::int64_t now_unix_ms) {
  if (state == JobState::running && record.started_unix_ms == 0) {
    record.started_unix_ms = now_unix_ms;
  }
  if (is_final(state)) record.ended_unix_ms = now_unix_ms;
}

}  // namespace

Journal::Entry& Journal::entry(JobId id) {
  const auto at = entries_.find(id);
  if (at != entries_.end()) return at->second;
  std::optional<JobRecord> record = store_.find(id);
  PW_CHECK(record.has_value(), "job " << id << " is not in the store");
  return entries_.emplace(id, Entry{std::move(*record), {}, {}, false}).first->second;
}

Journal::RunEntry& Journal::run_entry(Entry& entry, std::uint32_t number) {
  const auto at = entry.runs.find(number);
  if (at != entry.runs.end()) return at->second;
  std::optional<RunRecord> record = store_.find_run(entry.record.job.id, number);
  if (!record) {
    record.emplace();
    record->run.job = entry.record.job.id;
    record->run.number = number;
  }
  return entry.runs.emplace(number, RunEntry{std::move(*record), false}).first->second;
}

void Journal::add_event(Entry& entry, std::uint32_t run, std::int64_t now_unix_ms,
                        decltype(Event::what) what) {
  entry.pending.push_back({.sequence = entry.record.job.last_sequence + entry.pending.size() + 1,
                           .time_unix_ms = now_unix_ms,
                           .what = std::move(what),
                           .run = run});
  entry.dirty = dirty_ = true;
  ++pending_events_;
}

void Journal::add_job_state(const jobs::StoreJob& change, std::int64_t now_unix_ms) {
  Entry& entry = this->entry(change.job);
  Job& job = entry.record.job;
  const bool news =
      job.state != change.state || job.message != change.message || job.attempt != change.attempt;
  job.state = change.state;
  job.message = change.message;
  job.attempt = change.attempt;
  job.progress.runs = change.counts;
  entry.record.next_run = change.next_run;
  entry.dirty = dirty_ = true;
  take_times(job, change.state, now_unix_ms);
  if (!news) return;
  add_event(entry, 0, now_unix_ms, StateChange{change.state, change.message, change.attempt});
}

void Journal::add_run_state(const jobs::StoreRun& change, const std::string& pool,
                            std::int64_t now_unix_ms) {
  Entry& entry = this->entry(change.job);
  RunEntry& run_entry = this->run_entry(entry, change.run);
  Run& run = run_entry.record.run;
  run.state = change.state;
  run.message = change.message;
  run.attempt = change.attempt;
  if (change.state == JobState::starting) {
    run.pool = pool;
    run.ranks = change.ranks;
    run.progress = {};
  }
  take_times(run, change.state, now_unix_ms);
  if (is_final(change.state)) run.summary_json = change.summary_json;
  run_entry.dirty = entry.dirty = dirty_ = true;
  if (entry.record.job.progress.runs.total == 1) return;  // the job's own event says it
  add_event(entry, change.run, now_unix_ms,
            RunStateChange{{change.state, change.message, change.attempt}});
}

void Journal::set_cancel_asked(JobId id) {
  Entry& entry = this->entry(id);
  entry.record.cancel_asked = true;
  entry.dirty = dirty_ = true;
}

void Journal::set_progress(RunId run, const Progress& progress) {
  // Not worth a commit of its own: it goes with the next of this run.
  run_entry(entry(run.job), run.run).record.run.progress = progress;
}

void Journal::add_maker(RunId run, const Maker& maker) {
  Entry& entry = this->entry(run.job);
  RunEntry& run_entry = this->run_entry(entry, run.run);
  std::vector<Maker>& makers = run_entry.record.run.makers;
  const std::size_t before = makers.size();
  if (before < makers_max) pipewright::add_maker(makers, maker);
  if (makers.size() > before) run_entry.dirty = entry.dirty = dirty_ = true;
}

void Journal::add_log(RunId run, LogLine line, std::int64_t now_unix_ms) {
  add_event(entry(run.job), run.run, now_unix_ms, std::move(line));
}

std::uint64_t Journal::add_points(const RunPoints& points, std::int64_t now_unix_ms) {
  Entry& entry = this->entry(points.run.job);
  RunEntry& run_entry = this->run_entry(entry, points.run.run);
  RunRecord& record = run_entry.record;
  if (points.first_index > record.point_count) {
    throw ProtocolError("points of job " + std::to_string(points.run.job) + ", run " +
                        std::to_string(points.run.run) + " begin at index " +
                        std::to_string(points.first_index) + "; the next is " +
                        std::to_string(record.point_count));
  }
  const std::uint64_t known =
      std::min<std::uint64_t>(record.point_count - points.first_index, points.points.size());
  for (std::size_t i = known; i < points.points.size(); ++i) {
    const Point& point = points.points[i];
    add_event(entry, points.run.run, now_unix_ms, point);
    if (point.series == Series::last_stage_loss) {
      record.run.last_stage_loss = entry.record.job.last_stage_loss = point.value;
    } else if (point.series == Series::objective) {
      take_objective(record.run, point.value);
      take_objective(entry.record.job, point.value);
    }
  }
  const std::uint64_t end = points.first_index + points.points.size();
  record.point_count = std::max(record.point_count, end);
  run_entry.dirty = true;
  return end;
}

std::vector<Journal::Committed> Journal::commit() {
  std::vector<JobWrite> writes;
  for (auto& [id, entry] : entries_) {
    if (!entry.dirty) continue;
    entry.record.job.last_sequence += entry.pending.size();
    writes.push_back({&entry.record, {}, entry.pending});
    for (const auto& [number, run] : entry.runs) {
      if (run.dirty) writes.back().runs.push_back(&run.record);
    }
  }
  try {
    if (!writes.empty()) store_.write(writes);
  } catch (...) {
    for (auto& [id, entry] : entries_) {
      if (entry.dirty) entry.record.job.last_sequence -= entry.pending.size();
    }
    throw;
  }
  std::vector<Committed> committed;
  const auto is_idle = [](JobState state) { return is_final(state) || state == JobState::queued; };
  for (auto& [id, entry] : entries_) {
    std::erase_if(entry.runs,
                  [&](const auto& run) { return is_idle(run.second.record.run.state); });
    for (auto& [number, run] : entry.runs) run.dirty = false;
    if (!std::exchange(entry.dirty, false) || entry.pending.empty()) continue;
    auto list = std::make_shared<EventList>();
    list->events = std::exchange(entry.pending, {});
    list->next_sequence = entry.record.job.last_sequence + 1;
    committed.push_back({id, std::move(list)});
  }
  std::erase_if(entries_, [&](const auto& item) { return is_idle(item.second.record.job.state); });
  pending_events_ = 0;
  dirty_ = false;
  return committed;
}

std::optional<Job> Journal::find(JobId id) {
  if (std::optional<Job> job = under_way(id)) return job;
  std::optional<JobRecord> record = store_.find(id);
  if (!record) return std::nullopt;
  return std::move(record->job);
}

std::optional<Job> Journal::under_way(JobId id) const {
  const auto at = entries_.find(id);
  if (at == entries_.end()) return std::nullopt;
  Job job = at->second.record.job;
  if (const Run* run = run_under_way(id, 0); run != nullptr && job.progress.runs.total == 1) {
    show_run(job, *run);
  }
  return job;
}

const Run* Journal::run_under_way(JobId id, std::uint32_t number) const {
  const auto at = entries_.find(id);
  if (at == entries_.end()) return nullptr;
  const auto run = at->second.runs.find(number);
  return run == at->second.runs.end() ? nullptr : &run->second.record.run;
}

}  // namespace pipewright
