#include "client/cli/view/job_view.hpp"

#include <algorithm>
#include <cmath>

namespace pipewright::cli {

void Curve::add(PlotPoint point) {
  if (added_++ % stride_ == 0) kept_.push_back(point);
  newest_ = point;
  if (std::isfinite(point.y) && (!best_ || point.y < best_->y)) best_ = point;
  if (kept_.size() < points_max) return;
  for (std::size_t i = 0; i < kept_.size() / 2; ++i) kept_[i] = kept_[2 * i];
  kept_.resize(kept_.size() / 2);
  stride_ *= 2;
}

std::vector<PlotPoint> Curve::points() const {
  std::vector<PlotPoint> points = kept_;
  if (newest_ && (points.empty() || points.back() != *newest_)) points.push_back(*newest_);
  return points;
}

std::optional<std::uint32_t> JobView::best_run() const {
  std::optional<std::uint32_t> best;
  double least = 0;
  for (const auto& [run, curves] : curves_) {
    if (!curves.main().newest()) continue;
    const double value = curves.main().newest()->y;
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
  if (curves_.size() >= curves_max) {
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
  } else if (const auto* point = std::get_if<Point>(&event.what)) {
    const PlotPoint at{static_cast<double>(point->tick), point->value};
    if (point->series != Series::last_stage_loss && point->series != Series::objective) return;
    RunCurves& curves = curves_of(event.run);
    (point->series == Series::objective ? curves.objective : curves.loss).add(at);
    if (point->series == Series::objective) curves.updates = point->updates;
  }
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
