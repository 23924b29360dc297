// What is known of a job that is being watched: built up from the frames of its stream.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/cli/view/plot.hpp"
#include "proto/codec/api.hpp"

namespace pipewright::cli {

/// What is drawn along the x axis.
enum class XAxis { tick, updates, microbatches, wall_time };

/// A point of a series with all that it can be drawn over.
struct CurvePoint {
  double tick = 0;
  double count = 0;    // block updates; of the last stage's loss the microbatch
  double unix_ms = 0;  // when the daemon had it
  double value = 0;
  friend bool operator==(const CurvePoint&, const CurvePoint&) = default;
};

/// A curve of any length in bounded memory: when it is full, every second point is dropped. The
/// newest and the least are always kept.
class Curve {
 public:
  void add(CurvePoint point);
  /// What to draw, the newest point last.
  std::vector<CurvePoint> points() const;
  bool empty() const { return !newest_; }
  const std::optional<CurvePoint>& newest() const { return newest_; }
  const std::optional<CurvePoint>& best() const { return best_; }

 private:
  static constexpr std::size_t points_max = 8192;
  std::vector<CurvePoint> kept_;
  std::size_t added_ = 0, stride_ = 1;
  std::optional<CurvePoint> newest_, best_;
};

/// "objective", "last-stage loss", ...
std::string_view title_of(Series series);

class JobView {
 public:
  /// `runs`: those of its runs that are looked at; none: the job as a whole.
  explicit JobView(const Job& job, std::set<std::uint32_t> runs = {})
      : job_(job), chosen_(std::move(runs)) {}

  /// `now_seconds`: of any steady clock, for the rate.
  void apply(const StreamFrame& frame, double now_seconds);

  /// The curves of one run, as far as they are known.
  struct RunCurves {
    std::map<Series, Curve> series;
    std::int64_t updates = 0;
    JobState state = JobState::queued;  // of a run of many
    std::string message;
    double started_unix_ms = 0;

    /// Empty where there is no point.
    const Curve& of(Series one) const;
    /// The objective, or the last stage's loss while there is no objective.
    Series main() const;
  };
  /// Of a job of many runs curves are kept of so many: the one that is best, and the newest.
  static constexpr std::size_t curves_max = 8;

  const Job& job() const { return job_; }
  const std::set<std::uint32_t>& chosen() const { return chosen_; }
  /// Nothing that is looked at goes on.
  bool ended() const;
  bool many() const { return job_.progress.runs.total > 1; }
  const std::map<std::uint32_t, RunCurves>& curves() const { return curves_; }
  /// The run whose objective (or loss) is the least now; nothing before the first point.
  std::optional<std::uint32_t> best_run() const;
  /// The only run's; of many the best one's.
  const RunCurves& shown() const;
  /// The points of a series of a run along an axis, in the order of x. Counts of updates and of
  /// microbatches go side by side in fixed numbers: a series that has one is drawn over the other
  /// in proportion. x is not a number where that proportion is not known.
  std::vector<PlotPoint> line(const RunCurves& run, Series series, XAxis axis) const;

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
  std::set<std::uint32_t> chosen_;
  std::map<std::uint32_t, RunCurves> curves_;
  bool live_ = false;
  std::deque<std::pair<double, std::int64_t>> steps_at_;  // (seconds, steps done)
};

}  // namespace pipewright::cli
