// What `watch` and `submit --watch` do with the streams of jobs: draw, write lines of text, or
// JSON.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "client/cli/net/api.hpp"
#include "client/cli/net/stream.hpp"
#include "client/cli/view/live.hpp"

namespace pipewright::cli {

struct WatchOptions {
  bool linear = false;
  bool log_x = false;
  bool loss = false;
  bool json = false;
  bool stays = false;
  int smoothing = 0;
  std::string x = "ticks", series, color = "auto";
  int output_fd = 1;  // where the picture or the lines go
};

/// A job, or some of its runs.
struct WatchedJob {
  std::uint32_t id = 0;
  std::set<std::uint32_t> runs = {};  // none: the job as a whole
};

/// "7" and "7.2", each job once, in their order; a job that is given as a whole is watched as a
/// whole. Throws ConfigError.
std::vector<WatchedJob> parse_watched(const std::vector<std::string>& texts);

/// Adds what says how curves are drawn.
void add_watch_flags(CLI::App* command, WatchOptions& options);
/// Adds --color.
void add_color_flag(CLI::App* command, std::string& choice);

/// Follows the jobs to their ends and prints their summaries. Gives the exit status: the outcome of
/// the jobs or runs (the worst of them), or 130 after Ctrl-C or q, which end the watching and not
/// the jobs.
int watch_jobs(const EndpointFlags& flags, const std::vector<WatchedJob>& watched,
               const WatchOptions& options);

/// 0 succeeded, 1 failed, 3 cancelled.
int exit_status_of(JobState state);
/// That of the worst: a failure outweighs a cancellation.
int outcome_of(const std::vector<JobState>& states);

}  // namespace pipewright::cli
