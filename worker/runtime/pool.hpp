// A pool: the main loop of every rank, with the coordinator and its daemon on rank 0.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "worker/runtime/daemon_link.hpp"
#include "worker/transport/transport.hpp"

namespace pipewright {

/// How long a rank may say nothing before it is taken for lost, if nothing else is asked for: one
/// action of a large model takes its time.
inline constexpr std::chrono::milliseconds silence_max_default{30'000};

/// Ranks other than 0: say who they are, then work until the coordinator says to shut down, which
/// it is asked for once when `stop` becomes true. Between actions they say that they are alive,
/// several times within `silence_max`. Throws Error when the coordinator of a pool has been silent
/// for longer than it may be (RankWatch).
void serve_rank(Transport& transport, const RankInfo& me, const std::atomic<bool>& stop,
                std::chrono::milliseconds silence_max = silence_max_default);

/// Rank 0, first of all: waits for what the other ranks say of themselves. `stop` becomes true when
/// one of them asks to leave.
std::vector<RankInfo> gather_ranks(Transport& transport, const RankInfo& me,
                                   std::atomic<bool>& stop);
/// Rank 0, last of all: sends the other ranks home.
void shut_down_ranks(Transport& transport);

/// Begins to attach to the daemon (also one that has moved), telling of the runs that are kept.
/// Throws ConfigError when its address cannot be told.
using Connect = std::function<std::unique_ptr<DaemonLink>(std::vector<RunId> runs)>;

struct PoolOptions {
  Connect connect;
  std::function<void(const std::string&)> say;  // what the pool's log is to have
  std::string spool;                            // folder for the files of runs
  std::vector<RankInfo> ranks;                  // of gather_ranks
  std::chrono::milliseconds silence_max = silence_max_default;
  /// True when whoever told this rank to stop is about to kill it.
  const std::atomic<bool>& hurry;
};

struct PoolEnd {
  std::string reason;
  bool in_order = false;  // all ranks are there and none is in a run: they can be shut down
};

/// Rank 0 with a daemon: takes runs until the daemon has been away for longer than its lease or
/// says to leave, `stop` becomes true (also by another rank), or a rank has died or is silent.
/// While the daemon is away runs go on and what they give is kept. At the end runs that are under
/// way are given back, but for those on ranks that do not answer, which are lost.
PoolEnd serve_pool(Transport& transport, std::unique_ptr<DaemonLink> link,
                   const PoolOptions& options, std::atomic<bool>& stop);

struct StandaloneResult {
  RunOutcome outcome = RunOutcome::failed;
  std::string message;
  Value summary;
};

/// Rank 0 without a daemon: runs one job on all ranks (or as many as it can use), writes its files
/// to `out`. `on_progress` is called a few times a second.
StandaloneResult run_standalone(Transport& transport, const Value& job, const std::string& out,
                                const std::function<void(const Progress&)>& on_progress);

}  // namespace pipewright
