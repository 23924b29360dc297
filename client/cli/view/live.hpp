// The picture that `watch` draws on a terminal, as a pure function of the jobs, the settings and
// the size.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "client/cli/view/job_view.hpp"
#include "client/cli/view/watch_settings.hpp"

namespace pipewright::cli {

/// What a terminal can show.
struct TerminalLook {
  bool colors = true;
  bool utf8 = true;
};

struct TerminalSize {
  int columns = 80;
  int rows = 24;
};

/// What the curves' legend has an entry for.
struct WatchEntry {
  const JobView* job = nullptr;
  /// Of a job of many runs; nothing: the best one's curve stands for the job.
  std::optional<std::uint32_t> run = {};
};

/// One per job, or per run that is looked at. A single job of many runs has those whose curves are
/// kept.
std::vector<WatchEntry> entries_of(std::span<const JobView> jobs);
WatchContent content_of(std::span<const JobView> jobs);

/// As many lines as the picture needs, at most `size.rows - 1`, none wider than `size.columns - 1`.
/// `keys`: with the cursor of the legend, and a last line that names the keys.
std::vector<std::string> draw_live(std::span<const JobView> jobs, TerminalSize size,
                                   const WatchSettings& settings, TerminalLook look, bool keys);

/// `fraction` of `columns` in eighths of a character.
std::string progress_bar(double fraction, int columns);

/// "RUNNING" in its colour.
std::string state_text(JobState state, bool colors);

}  // namespace pipewright::cli
