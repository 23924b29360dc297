// The stream of a job as lines of text, for pipes and files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/codec/api.hpp"

namespace pipewright::cli {

/// Chooses what of a job's stream is written as lines of text: changes of state, errors and
/// warnings, and points at about 20 evenly spaced steps of the run; of many runs those that fail or
/// are lost, and how many have ended at about 20 steps. The same stream gives the same lines,
/// however it is cut into frames.
class LineWriter {
 public:
  /// `ticks_total`: the length of the run, or 0 while it is not known.
  explicit LineWriter(std::uint32_t job, std::int64_t ticks_total = 0, std::uint32_t runs = 1)
      : name_("job " + std::to_string(job) + ": "), ticks_total_(ticks_total), runs_total_(runs) {}
  /// Of one run of a job of many: as if there was no other.
  static LineWriter of_run(std::uint32_t job, std::uint32_t run);
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
  std::string on_state(const StateChange& change);
  std::string on_run_state(std::uint32_t run, const StateChange& change);
  std::string on_point(const Point& point);
  std::string on_total(std::int64_t ticks_total);
  std::string thin(Thinned& series, const Point& point);
  std::string text(const Point& point) const;
  std::string flush();

  static constexpr std::int64_t steps = 20;
  std::string name_;
  std::optional<std::uint32_t> only_run_;
  std::int64_t ticks_total_;
  Thinned objective_, validation_, loss_;
  std::int64_t runs_total_;
  std::int64_t runs_ended_ = 0;
};

}  // namespace pipewright::cli
