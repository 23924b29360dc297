#include "client/cli/view/job_view.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pipewright::cli {

void Curve::add(CurvePoint point) {
  if (added_++ % stride_ == 0) kept_.push_back(point);
  newest_ = point;
  if (std::isfinite(point.value) && (!best_ || point.value < best_->value)) best_ = point;
  if (kept_.size() < points_max) return;
  for (std::size_t i = 0; i < kept_.size() / 2; ++i) kept_[i] = kept_[2 * i];
  kept_.resize(kept_.size() / 2);
  stride_ *= 2;
}

std::vector<CurvePoint> Curve::points() const {
  std::vector<CurvePoint> points = kept_;
  if (newest_ && (points.empty() || points.back() != *newest_)) points.push_back(*newest_);
  return points;
}

std::string_view title_of(Series series) {
  switch (series) {
    case Series::objective:
      return "objective";
    case Series::last_stage_loss:
      return "last-stage loss";
    case Series::gradient_norm_sq:
      return "||grad f||^2";
    case Series::gradient_norm_sq_mean:
      return "mean ||grad f||^2";
    case Series::bound:
      return "bound of RPD";
    case Series::gap:
      return "gap f - f*";
    case Series::validation:
      return "validation loss";
  }
  return "";
}

const Curve& JobView::RunCurves::of(Series one) const {
  static const Curve none;
  const auto at = series.find(one);
  return at == series.end() ? none : at->second;
}

Series JobView::RunCurves::main() const {
  return of(Series::objective).empty() ? Series::last_stage_loss : Series::objective;
}

std::optional<std::uint32_t> JobView::best_run() const {
  std::optional<std::uint32_t> best;
  double least = 0;
  for (const auto& [run, curves] : curves_) {
    const auto& newest = curves.of(curves.main()).newest();
    if (!newest) continue;
    const double value = newest->value;
    if (best && !(value < least)) continue;
    if (best && std::isnan(value)) continue;
    best = run;
    least = std::isfinite(value) ? value : HUGE_VAL;
  }
  return best;
}

const JobView::RunCurves& JobView::shown() const {
  static const RunCurves none;
  const auto best = best_run();
  return best ? curves_.at(*best) : none;
}

/// Makes room for a new run's by forgetting the oldest that is not the best.
JobView::RunCurves& JobView::curves_of(std::uint32_t run) {
  const auto at = curves_.find(run);
  if (at != curves_.end()) return at->second;
  if (chosen_.empty() && curves_.size() >= curves_max) {
    auto oldest = curves_.begin();
    if (oldest->first == best_run()) ++oldest;
    curves_.erase(oldest);
  }
  return curves_[run];
}

void JobView::apply_event(const Event& event) {
  if (const auto* change = std::get_if<StateChange>(&event.what)) {
    job_.state = change->state;
    job_.message = change->message;
    job_.attempt = change->attempt;
    if (change->state == JobState::running && job_.started_unix_ms == 0) {
      job_.started_unix_ms = event.time_unix_ms;
    }
    return;
  }
  if (!chosen_.empty() && !chosen_.contains(event.run)) return;
  if (const auto* change = std::get_if<RunStateChange>(&event.what)) {
    // Of all runs of a job the states would take room that its curves do not.
    const auto known = curves_.find(event.run);
    if (chosen_.empty() && known == curves_.end()) return;
    RunCurves& run = curves_[event.run];
    run.state = change->state;
    run.message = change->message;
    if (run.started_unix_ms == 0 && change->state >= JobState::starting) {
      run.started_unix_ms = static_cast<double>(event.time_unix_ms);
    }
  } else if (const auto* point = std::get_if<Point>(&event.what)) {
    RunCurves& run = curves_of(event.run);
    const bool loss = point->series == Series::last_stage_loss;
    run.series[point->series].add(
        {.tick = static_cast<double>(point->tick),
         .count = static_cast<double>(loss ? point->microbatch : point->updates),
         .unix_ms = static_cast<double>(event.time_unix_ms),
         .value = point->value});
    if (point->series == Series::objective) run.updates = point->updates;
    if (run.state == JobState::queued) run.state = JobState::running;
    if (run.started_unix_ms == 0) run.started_unix_ms = static_cast<double>(event.time_unix_ms);
  }
}

bool JobView::ended() const {
  if (is_final(job_.state)) return true;
  return !chosen_.empty() && std::all_of(chosen_.begin(), chosen_.end(), [&](std::uint32_t run) {
    const auto at = curves_.find(run);
    return at != curves_.end() && is_final(at->second.state);
  });
}

std::vector<PlotPoint> JobView::line(const RunCurves& run, Series series, XAxis axis) const {
  const bool loss = series == Series::last_stage_loss;
  const auto updates = static_cast<double>(job_.progress.updates_total);
  const auto microbatches = static_cast<double>(job_.progress.microbatches_total);
  const bool known = updates > 0 && microbatches > 0;
  const double none = std::numeric_limits<double>::quiet_NaN();
  double factor = 1;
  if (axis == XAxis::updates && loss) factor = known ? updates / microbatches : none;
  if (axis == XAxis::microbatches && !loss) factor = known ? microbatches / updates : none;
  const double started = !many() && job_.started_unix_ms > 0
                             ? static_cast<double>(job_.started_unix_ms)
                             : run.started_unix_ms;
  std::vector<PlotPoint> points;
  for (const CurvePoint& point : run.of(series).points()) {
    double x = point.tick;
    if (axis == XAxis::wall_time) x = std::max(0.0, point.unix_ms - started) / 1000;
    if (axis == XAxis::updates || axis == XAxis::microbatches) x = point.count * factor;
    points.push_back({x, point.value});
  }
  // Microbatches do not always end in their order.
  std::stable_sort(points.begin(), points.end(),
                   [](const PlotPoint& a, const PlotPoint& b) { return a.x < b.x; });
  // Of a run that ended for it the value that was not finite may be in another series.
  const std::string& message = many() ? run.message : job_.message;
  if (!points.empty() && message.starts_with("diverged")) points.push_back({points.back().x, none});
  return points;
}

std::int64_t JobView::steps_done() const {
  return many() ? job_.progress.runs.ended() : job_.progress.ticks_done;
}
std::int64_t JobView::steps_total() const {
  return many() ? job_.progress.runs.total : job_.progress.ticks_total;
}

void JobView::set_progress(const Progress& progress, double now_seconds) {
  job_.progress = progress;
  if (!live_) return;
  // A run that was started again begins from 0.
  if (!steps_at_.empty() && steps_at_.back().second > steps_done()) steps_at_.clear();
  steps_at_.emplace_back(now_seconds, steps_done());
  while (steps_at_.size() > 2 && steps_at_.front().first < now_seconds - 10) steps_at_.pop_front();
}

void JobView::apply(const StreamFrame& frame, double now_seconds) {
  if (const auto* list = std::get_if<EventList>(&frame)) {
    for (const Event& event : list->events) apply_event(event);
  } else if (const auto* live = std::get_if<LiveFromHere>(&frame)) {
    job_ = live->job;
    live_ = true;
    set_progress(job_.progress, now_seconds);
  } else if (const auto* progress = std::get_if<Progress>(&frame)) {
    set_progress(*progress, now_seconds);
  } else if (const auto* ended = std::get_if<JobEnded>(&frame)) {
    job_ = ended->job;
  }
}

double JobView::fraction_done() const {
  if (job_.state == JobState::succeeded) return 1;
  const auto total = static_cast<double>(steps_total());
  if (total <= 0) return 0;
  return std::clamp(static_cast<double>(steps_done()) / total, 0.0, 1.0);
}

std::optional<double> JobView::steps_per_second() const {
  if (job_.state != JobState::running || steps_at_.size() < 2) return std::nullopt;
  const auto [first_time, first_steps] = steps_at_.front();
  const auto [last_time, last_steps] = steps_at_.back();
  if (last_time - first_time < 0.2 || last_steps <= first_steps) return std::nullopt;
  return static_cast<double>(last_steps - first_steps) / (last_time - first_time);
}

std::optional<double> JobView::seconds_left() const {
  const auto rate = steps_per_second();
  if (!rate || steps_total() <= steps_done()) return std::nullopt;
  return static_cast<double>(steps_total() - steps_done()) / *rate;
}

}  // namespace pipewright::cli
