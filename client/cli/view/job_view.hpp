// What is known of a job that is being watched: built up from the frames of its stream.
#pragma once

#include <deque>
#include <map>
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

  /// The curves of one run, as far as they are known.
  struct RunCurves {
    Curve objective, loss;
    std::int64_t updates = 0;

    /// The objective, or the last stage's loss while there is no objective.
    const Curve& main() const { return objective.empty() ? loss : objective; }
  };
  /// Of a job of many runs curves are kept of so many: the one that is best, and the newest.
  static constexpr std::size_t curves_max = 8;

  const Job& job() const { return job_; }
  bool many() const { return job_.progress.runs.total > 1; }
  const std::map<std::uint32_t, RunCurves>& curves() const { return curves_; }
  /// The run whose objective (or loss) is the least now; nothing before the first point.
  std::optional<std::uint32_t> best_run() const;
  /// The only run's; of many the best one's.
  const RunCurves& shown() const;
  const char* main_name() const {
    return shown().objective.empty() ? "last-stage loss" : "objective";
  }

  double fraction_done() const;
  /// Ticks (of many: runs) per second over the last ten seconds, when known.
  std::optional<double> steps_per_second() const;
  std::optional<double> seconds_left() const;

  /// A line about the connection, or empty.
  std::string note;

 private:
  void apply_event(const Event& event);
  void set_progress(const Progress& progress, double now_seconds);
  RunCurves& curves_of(std::uint32_t run);
  std::int64_t steps_done() const;
  std::int64_t steps_total() const;

  Job job_;
  std::map<std::uint32_t, RunCurves> curves_;
  bool live_ = false;
  std::deque<std::pair<double, std::int64_t>> steps_at_;  // (seconds, steps done)
};

}  // namespace pipewright::cli
