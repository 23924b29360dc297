// The picture of `pipewright top`, as a pure function of what the daemon has said.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/view/keys.hpp"
#include "client/cli/view/live.hpp"
#include "proto/codec/api.hpp"

namespace pipewright::cli {

struct TopData {
  std::string daemon;  // its address
  std::int64_t now_unix_ms = 0;
  std::vector<Job> jobs = {};
  PoolList pools = {};
  std::string fault = {};  // why what is shown is not live; else empty
};

enum class TopOrder { activity, id, progress, value, user };

struct TopSettings {
  TopOrder order = TopOrder::activity;
  bool reversed = false;
  bool all = true;  // jobs that have ended too
  std::size_t first = 0;
  bool quit = false;
};

/// Keys that mean nothing change nothing.
void press(TopSettings& settings, Key key, std::size_t jobs);

/// Of a job of many runs the part of them that has ended.
double fraction_done(const Job& job);

/// Seconds until a job that runs will have ended, from what it has done since it began; nothing
/// where that cannot be told.
std::optional<double> seconds_left(const Job& job, std::int64_t now_unix_ms);

/// At most `size.rows` lines, none wider than `size.columns`; 0: no limit. `keys`: with a last line
/// that names them.
std::vector<std::string> draw_top(const TopData& data, TerminalSize size,
                                  const TopSettings& settings, TerminalLook look, bool keys);

}  // namespace pipewright::cli
