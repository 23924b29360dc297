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

void JobView::apply_event(const Event& event) {
  if (const auto* change = std::get_if<StateChange>(&event.what)) {
    job_.state = change->state;
    job_.message = change->message;
    job_.attempt = change->attempt;
  } else if (const auto* point = std::get_if<Point>(&event.what)) {
    const PlotPoint at{static_cast<double>(point->tick), point->value};
    if (point->series == Series::last_stage_loss) loss_.add(at);
    if (point->series != Series::objective) return;
    objective_.add(at);
    updates_ = point->updates;
  }
}

void JobView::set_progress(const Progress& progress, double now_seconds) {
  job_.progress = progress;
  if (!live_) return;
  // A run that was started again begins from 0.
  if (!ticks_at_.empty() && ticks_at_.back().second > progress.ticks_done) ticks_at_.clear();
  ticks_at_.emplace_back(now_seconds, progress.ticks_done);
  while (ticks_at_.size() > 2 && ticks_at_.front().first < now_seconds - 10) ticks_at_.pop_front();
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
  const auto total = static_cast<double>(job_.progress.ticks_total);
  if (total <= 0) return 0;
  return std::clamp(static_cast<double>(job_.progress.ticks_done) / total, 0.0, 1.0);
}

std::optional<double> JobView::ticks_per_second() const {
  if (job_.state != JobState::running || ticks_at_.size() < 2) return std::nullopt;
  const auto [first_time, first_ticks] = ticks_at_.front();
  const auto [last_time, last_ticks] = ticks_at_.back();
  if (last_time - first_time < 0.2 || last_ticks <= first_ticks) return std::nullopt;
  return static_cast<double>(last_ticks - first_ticks) / (last_time - first_time);
}

std::optional<double> JobView::seconds_left() const {
  const auto rate = ticks_per_second();
  if (!rate || job_.progress.ticks_total <= job_.progress.ticks_done) return std::nullopt;
  return static_cast<double>(job_.progress.ticks_total - job_.progress.ticks_done) / *rate;
}

}  // namespace pipewright::cli
