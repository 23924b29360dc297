// What is known of a job that is being watched: built up from the frames of its stream.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/view/plot.hpp"
#include "proto/codec/api.hpp"

namespace pipewright::cli {

/// A curve of any length in bounded memory: when it is full, every second point is dropped. The
/// newest and the least are always kept.
class Curve {
 public:
  void add(PlotPoint point);
  /// What to draw, the newest point last.
  std::vector<PlotPoint> points() const;
  bool empty() const { return !newest_; }
  const std::optional<PlotPoint>& newest() const { return newest_; }
  const std::optional<PlotPoint>& best() const { return best_; }

 private:
  static constexpr std::size_t points_max = 8192;
  std::vector<PlotPoint> kept_;
  std::size_t added_ = 0, stride_ = 1;
  std::optional<PlotPoint> newest_, best_;
};

class JobView {
 public:
  explicit JobView(const Job& job) : job_(job) {}

  /// `now_seconds`: of any steady clock, for the rate.
  void apply(const StreamFrame& frame, double now_seconds);

  const Job& job() const { return job_; }
  const Curve& objective() const { return objective_; }
  const Curve& loss() const { return loss_; }
  /// The objective, or the last stage's loss while there is no objective.
  const Curve& main_curve() const { return objective_.empty() ? loss_ : objective_; }
  const char* main_name() const { return objective_.empty() ? "last-stage loss" : "objective"; }
  std::int64_t updates() const { return updates_; }

  double fraction_done() const;
  /// Ticks per second over the last ten seconds, when known.
  std::optional<double> ticks_per_second() const;
  std::optional<double> seconds_left() const;

  /// A line about the connection, or empty.
  std::string note;

 private:
  void apply_event(const Event& event);
  void set_progress(const Progress& progress, double now_seconds);

  Job job_;
  Curve objective_, loss_;
  std::int64_t updates_ = 0;
  bool live_ = false;
  std::deque<std::pair<double, std::int64_t>> ticks_at_;  // (seconds, ticks done)
};

}  // namespace pipewright::cli
