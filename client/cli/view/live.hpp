// The picture that `watch` draws on a terminal, as a pure function of the jobs and the size.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "client/cli/view/job_view.hpp"

namespace pipewright::cli {

struct LiveOptions {
  bool log_y = true;
  bool colors = true;
  bool loss = false;  // the last stage's loss rather than the objective
};

struct TerminalSize {
  int columns = 80;
  int rows = 24;
};

/// At most `size.rows - 1` lines, none wider than `size.columns - 1`.
std::vector<std::string> draw_live(std::span<const JobView> jobs, TerminalSize size,
                                   const LiveOptions& options);

/// `fraction` of `columns` in eighths of a character.
std::string progress_bar(double fraction, int columns);

/// "RUNNING" in its colour.
std::string state_text(JobState state, bool colors);

}  // namespace pipewright::cli
