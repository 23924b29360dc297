#include "client/cli/line_writer.hpp"

#include <algorithm>
#include <utility>

#include "client/cli/view/text.hpp"

namespace pipewright::cli {

std::string LineWriter::on_frame(const StreamFrame& frame) {
  std::string out;
  if (const auto* list = std::get_if<EventList>(&frame)) {
    for (const Event& event : list->events) out += on_event(event);
  } else if (const auto* live = std::get_if<LiveFromHere>(&frame)) {
    out = on_total(live->job.progress.ticks_total);
  } else if (const auto* progress = std::get_if<Progress>(&frame)) {
    out = on_total(progress->ticks_total);
  } else if (const auto* ended = std::get_if<JobEnded>(&frame)) {
    out = on_total(ended->job.progress.ticks_total) + flush();
  }
  return out;
}

LineWriter LineWriter::of_run(std::uint32_t job, std::uint32_t run) {
  LineWriter writer(job);
  writer.name_ = "run " + std::to_string(job) + "." + std::to_string(run) + ": ";
  writer.only_run_ = run;
  return writer;
}

std::string LineWriter::on_event(const Event& event) {
  if (only_run_) {
    const auto* own = std::get_if<RunStateChange>(&event.what);
    if (own != nullptr) return event.run == *only_run_ ? on_state(*own) : std::string();
    if (event.run != *only_run_ || std::holds_alternative<StateChange>(event.what)) return {};
  }
  if (const auto* point = std::get_if<Point>(&event.what)) {
    return runs_total_ > 1 ? std::string() : on_point(*point);
  }
  if (const auto* change = std::get_if<RunStateChange>(&event.what)) {
    return on_run_state(event.run, *change);
  }
  if (const auto* change = std::get_if<StateChange>(&event.what)) return on_state(*change);
  const auto& log = std::get<LogLine>(event.what);
  if (log.severity == Severity::info) return {};
  return name_ + (log.severity == Severity::error ? "error: " : "warning: ") + printable(log.text) +
         "\n";
}

std::string LineWriter::on_state(const StateChange& change) {
  std::string line;
  if (is_final(change.state)) line = flush();
  line += name_ + std::string(name_of(change.state));
  if (change.attempt > 1) line += " (attempt " + std::to_string(change.attempt) + ")";
  if (!change.message.empty()) line += ": " + printable(change.message);
  return line + "\n";
}

std::string LineWriter::on_run_state(std::uint32_t run, const StateChange& change) {
  std::string out;
  if (change.state == JobState::failed ||
      (change.state == JobState::queued && !change.message.empty())) {
    out = name_ + "run " + std::to_string(run) + ' ' + std::string(name_of(change.state)) + ": " +
          printable(change.message) + '\n';
  }
  if (!is_final(change.state)) return out;
  const std::int64_t before = runs_ended_++ * steps / runs_total_;
  if (runs_ended_ * steps / runs_total_ == before) return out;
  return out + name_ + std::to_string(runs_ended_) + " of " + std::to_string(runs_total_) +
         " runs have ended\n";
}

std::string LineWriter::on_point(const Point& point) {
  if (point.series == Series::validation) return thin(validation_, point);
  if (point.series != Series::objective && point.series != Series::last_stage_loss) return {};
  // The loss is written only for jobs without an objective.
  if (point.series == Series::objective) {
    loss_ = {};
    return thin(objective_, point);
  }
  return objective_.newest ? std::string() : thin(loss_, point);
}

std::string LineWriter::thin(Thinned& series, const Point& point) {
  const bool first = !series.newest;
  series.newest = point;
  series.newest_written = first;
  if (first) {
    series.step_next = 1;
    return text(point);
  }
  if (ticks_total_ <= 0) {
    series.held.push_back(point);
    return {};
  }
  const std::int64_t step = point.tick * steps / ticks_total_;
  if (step < series.step_next) return {};
  series.step_next = step + 1;
  series.newest_written = true;
  return text(point);
}

std::string LineWriter::on_total(std::int64_t ticks_total) {
  if (ticks_total <= 0 || ticks_total_ > 0) return {};
  ticks_total_ = ticks_total;
  std::string out;
  for (Thinned* series : {&objective_, &validation_, &loss_}) {
    for (const Point& point : std::exchange(series->held, {})) out += thin(*series, point);
  }
  return out;
}

/// The run is over: the newest points, if they were passed over.
std::string LineWriter::flush() {
  std::string out;
  for (Thinned* series : {&objective_, &validation_, &loss_}) {
    if (!series->newest) continue;
    out += on_total(std::max<std::int64_t>(series->newest->tick, 1));
    if (!series->newest_written) out += text(*series->newest);
    series->newest_written = true;
  }
  return out;
}

std::string LineWriter::text(const Point& point) const {
  std::string out = name_ + "tick " + std::to_string(point.tick);
  if (point.series == Series::last_stage_loss) {
    out += "  microbatch " + std::to_string(point.microbatch) + "  last-stage loss ";
  } else {
    out += "  updates " + std::to_string(point.updates) +
           (point.series == Series::validation ? "  validation " : "  objective ");
  }
  return out + format_short(point.value, 6) + "\n";
}

}  // namespace pipewright::cli
