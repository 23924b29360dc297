// The coordinator of a pool (rank 0): does runs on the ranks that it is told to use, each with a
// RunControl of its own, and tells whoever listens what comes of them. A run whose ranks are busy
// waits for them; it is told to them when the run before is told to stop, so that no rank waits for
// the next.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "proto/codec/control.hpp"
#include "proto/codec/pool.hpp"
#include "worker/runtime/run_listener.hpp"
#include "worker/transport/transport.hpp"

namespace pipewright {

class PoolRun;

class Coordinator {
 public:
  /// Files of runs go to folders under `spool`.
  Coordinator(Transport& transport, RunListener& listener, std::string spool);
  ~Coordinator();

  /// The ranks are ascending. Throws ProtocolError for ranks that are not there, and for a run that
  /// is there already.
  void start(const StartRun& start);
  /// Ends a run as CANCELLED; nothing happens when there is no such run.
  void cancel(RunId run);
  /// Tells all runs to stop, and forgets those that wait: the listener hears no end of them.
  void give_back_all();
  /// All that have not ended.
  std::vector<RunId> runs() const;
  /// The runs that have begun on one of these ranks.
  std::vector<RunId> runs_on(const std::set<std::uint32_t>& ranks) const;
  /// Ranks that prepare a run.
  std::set<std::uint32_t> starting() const;
  /// Ranks that have not left runs that were told to stop.
  std::set<std::uint32_t> leaving() const;
  /// Of a checkpoint that the listener was given; of a run that is over nothing happens.
  void on_stored(const CheckpointStored& stored);
  void on_piece(const CheckpointPiece& piece);
  /// ClockQuestion, RankReady, ReportMessage, FinalMessage, RankFault or RankIdle of a rank.
  void on_control(ControlMessage message);
  /// Works for a short while. False when there was nothing to do.
  bool poll();

  bool has_runs() const { return !runs_.empty() || !waiting_.empty(); }

 private:
  void begin_waiting();
  void begin(const StartRun& start);

  Transport& transport_;
  RunListener& listener_;
  std::string spool_;
  std::map<std::uint32_t, std::unique_ptr<PoolRun>> runs_;  // by the numbers that ranks know
  std::deque<StartRun> waiting_;
  std::uint32_t last_number_ = 0;
};

}  // namespace pipewright
