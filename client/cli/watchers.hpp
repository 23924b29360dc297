// What `watch` and `submit --watch` do with the streams of jobs: draw, write lines of text, or
// JSON.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/cli/net/api.hpp"
#include "client/cli/net/stream.hpp"
#include "client/cli/view/live.hpp"

namespace pipewright::cli {

struct WatchOptions {
  bool linear = false;
  bool loss = false;
  bool json = false;
  int output_fd = 1;  // where the picture or the lines go
};

/// Adds --linear and --loss.
void add_watch_flags(CLI::App* command, WatchOptions& options);

/// Follows the jobs to their ends and prints their summaries. Gives the exit status: the outcome of
/// the jobs (the worst of them), or 130 after Ctrl-C, which ends the watching and not the jobs.
int watch_jobs(const EndpointFlags& flags, const std::vector<std::uint32_t>& ids,
               const WatchOptions& options);

/// 0 succeeded, 1 failed, 3 cancelled.
int exit_status_of(JobState state);
/// That of the worst: a failure outweighs a cancellation.
int outcome_of(const std::vector<Job>& jobs);

/// Chooses what of a job's stream is written as lines of text: changes of state, errors and
/// warnings, and points at about 20 evenly spaced steps of the run; of many runs those that fail or
/// are lost, and how many have ended at about 20 steps. The same stream gives the same lines,
/// however it is cut into frames.
class LineWriter {
 public:
  /// `ticks_total`: the length of the run, or 0 while it is not known.
  explicit LineWriter(std::uint32_t job, std::int64_t ticks_total = 0, std::uint32_t runs = 1)
      : job_(job), ticks_total_(ticks_total), runs_total_(runs) {}
  /// Lines to write now, each with its newline.
  std::string on_frame(const StreamFrame& frame);

 private:
  struct Thinned {
    std::int64_t step_next = 0;
    std::vector<Point> held;  // while the length of the run is not known
    std::optional<Point> newest;
    bool newest_written = false;
  };
  std::string on_event(const Event& event);
  std::string on_run_state(std::uint32_t run, const StateChange& change);
  std::string on_point(const Point& point);
  std::string on_total(std::int64_t ticks_total);
  std::string thin(Thinned& series, const Point& point);
  std::string text(const Point& point) const;
  std::string flush();

  static constexpr std::int64_t steps = 20;
  std::uint32_t job_;
  std::int64_t ticks_total_;
  Thinned objective_, validation_, loss_;
  std::int64_t runs_total_;
  std::int64_t runs_ended_ = 0;
};

}  // namespace pipewright::cli
