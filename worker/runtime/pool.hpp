// A pool: the main loop of every rank, with the coordinator and its daemon on rank 0.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "worker/runtime/daemon_link.hpp"
#include "worker/transport/transport.hpp"

namespace pipewright {

/// Ranks other than 0: say who they are, then work until the coordinator says to shut down, which
/// it is asked for once when `stop` becomes true.
void serve_rank(Transport& transport, const RankInfo& me, const std::atomic<bool>& stop);

/// Rank 0, first of all: waits for what the other ranks say of themselves. `stop` becomes true when
/// one of them asks to leave.
std::vector<RankInfo> gather_ranks(Transport& transport, const RankInfo& me,
                                   std::atomic<bool>& stop);
/// Rank 0, last of all: sends the other ranks home.
void shut_down_ranks(Transport& transport);

struct PoolEnd {
  std::string reason;
  bool in_order = false;  // no rank is in a run: all can be shut down
};

/// Rank 0 with a daemon: takes runs until the connection is lost, the daemon says to leave, or
/// `stop` becomes true (also by another rank). The last two give the runs that are under way back.
PoolEnd serve_pool(Transport& transport, DaemonLink& link, const std::string& spool,
                   std::atomic<bool>& stop);

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
