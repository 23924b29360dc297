// A plan as a Gantt chart in SVG: a row per stage, boxes in the order of time.
#pragma once

#include <string>
#include <vector>

#include "core/sim/timeline.hpp"

namespace pipewright::cli {

struct GanttOptions {
  Tick from{0};
  Tick to{0};                 // exclusive
  bool in_durations = false;  // one tick is a nanosecond
  bool messages = false;      // a line from the end of an F or B to where its output is used next
};

/// Charts of more boxes are refused: nobody could read them.
inline constexpr std::size_t gantt_boxes_max = 5000;

/// The entries, given in the global order, that a chart from `from` to `to` shows are those that
/// overlap it. F in blue, B in orange, U and SYNC in dark; lighter and darker by replica where a
/// row holds several. Microbatch numbers stand where they fit, and every box has its name and times
/// as a tooltip. Throws ConfigError when there are more than gantt_boxes_max boxes.
std::string gantt_svg(const Timeline& timeline, const GanttOptions& options);

}  // namespace pipewright::cli
