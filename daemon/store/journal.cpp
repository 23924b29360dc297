#include "daemon/store/journal.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/check.hpp"

namespace pipewright {

Journal::Entry& Journal::entry(JobId id) {
  const auto at = entries_.find(id);
  if (at != entries_.end()) return at->second;
  std::optional<JobRecord> record = store_.find(id);
  PW_CHECK(record.has_value(), "job " << id << " is not in the store");
  return entries_.emplace(id, Entry{std::move(*record), {}, false}).first->second;
}

void Journal::add_event(Entry& entry, std::int64_t now_unix_ms, decltype(Event::what) what) {
  entry.pending.push_back({.sequence = entry.record.job.last_sequence + entry.pending.size() + 1,
                           .time_unix_ms = now_unix_ms,
                           .what = std::move(what)});
  entry.dirty = dirty_ = true;
  ++pending_events_;
}

void Journal::add_state(const jobs::StoreState& change, const std::string& pool,
                        std::int64_t now_unix_ms) {
  Entry& entry = this->entry(change.job);
  Job& job = entry.record.job;
  job.state = change.state;
  job.message = change.message;
  job.attempt = change.attempt;
  if (change.state == JobState::starting) {
    job.pool = pool;
    job.ranks = change.ranks;
    job.progress = {};
  }
  if (change.state == JobState::running && job.started_unix_ms == 0) {
    job.started_unix_ms = now_unix_ms;
  }
  if (is_final(change.state)) {
    job.ended_unix_ms = now_unix_ms;
    job.summary_json = change.summary_json;
  }
  add_event(entry, now_unix_ms, StateChange{change.state, change.message, change.attempt});
}

void Journal::set_cancel_asked(JobId id) {
  Entry& entry = this->entry(id);
  entry.record.cancel_asked = true;
  entry.dirty = dirty_ = true;
}

void Journal::set_progress(JobId id, const Progress& progress) {
  // Not worth a commit of its own: it goes with the next.
  entry(id).record.job.progress = progress;
}

void Journal::add_log(JobId id, LogLine line, std::int64_t now_unix_ms) {
  add_event(entry(id), now_unix_ms, std::move(line));
}

std::uint64_t Journal::add_points(const RunPoints& points, std::int64_t now_unix_ms) {
  Entry& entry = this->entry(points.run.job);
  JobRecord& record = entry.record;
  if (points.first_index > record.point_count) {
    throw ProtocolError("points of job " + std::to_string(points.run.job) + " begin at index " +
                        std::to_string(points.first_index) + "; the next is " +
                        std::to_string(record.point_count));
  }
  const std::uint64_t known =
      std::min<std::uint64_t>(record.point_count - points.first_index, points.points.size());
  for (std::size_t i = known; i < points.points.size(); ++i) {
    const Point& point = points.points[i];
    add_event(entry, now_unix_ms, point);
    if (point.series != Series::objective) continue;
    std::optional<double>& best = record.job.objective_best;
    record.job.objective_last = point.value;
    if (!best || std::isnan(*best) || point.value < *best) best = point.value;
  }
  const std::uint64_t end = points.first_index + points.points.size();
  record.point_count = std::max(record.point_count, end);
  return end;
}

std::vector<Journal::Committed> Journal::commit() {
  std::vector<JobWrite> writes;
  for (auto& [id, entry] : entries_) {
    if (!entry.dirty) continue;
    entry.record.job.last_sequence += entry.pending.size();
    writes.push_back({&entry.record, entry.pending});
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
  for (auto& [id, entry] : entries_) {
    if (!std::exchange(entry.dirty, false) || entry.pending.empty()) continue;
    auto list = std::make_shared<EventList>();
    list->events = std::exchange(entry.pending, {});
    list->next_sequence = entry.record.job.last_sequence + 1;
    committed.push_back({id, std::move(list)});
  }
  std::erase_if(entries_, [](const auto& item) {
    const JobState state = item.second.record.job.state;
    return is_final(state) || state == JobState::queued;
  });
  pending_events_ = 0;
  dirty_ = false;
  return committed;
}

std::optional<Job> Journal::find(JobId id) {
  if (const Job* job = under_way(id)) return *job;
  std::optional<JobRecord> record = store_.find(id);
  if (!record) return std::nullopt;
  return std::move(record->job);
}

const Job* Journal::under_way(JobId id) const {
  const auto at = entries_.find(id);
  return at == entries_.end() ? nullptr : &at->second.record.job;
}

}  // namespace pipewright
