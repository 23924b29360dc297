// What `watch` shows of its curves, and what keys change of it. No terminal here.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "client/cli/view/job_view.hpp"
#include "client/cli/view/keys.hpp"

namespace pipewright::cli {

struct WatchSettings {
  XAxis x = XAxis::tick;
  bool log_x = false;
  bool log_y = true;
  /// 0 (none) to 100, see smoothing_width().
  int smoothing = 0;
  /// Nothing: the objective, or the last stage's loss of those that have none.
  std::optional<Series> series = {};
  double x_tail = 1;
  /// Of the legend: the entry that the cursor is on, and those that are not drawn.
  std::size_t cursor = 0;
  std::set<std::size_t> hidden = {};
  bool quit = false;
};

inline constexpr int smoothing_max = 100;
inline constexpr int smoothing_step = 10;

/// What the keys have to know of what there is.
struct WatchContent {
  std::size_t entries = 0;          // of the legend
  std::vector<Series> series = {};  // that have points
};

/// Keys that mean nothing change nothing.
void press(WatchSettings& settings, Key key, const WatchContent& content);

/// "x axis", ... for a line that is so wide; as many as there is room for, quitting always.
std::string watch_keys(int columns, std::size_t entries);

/// "ticks", "updates", "microbatches", "seconds".
std::string_view unit_of(XAxis axis);

}  // namespace pipewright::cli
