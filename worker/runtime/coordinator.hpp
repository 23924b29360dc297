// The coordinator of a pool (rank 0): does runs on the ranks that it is told to use, each with a
// RunControl of its own, and tells whoever listens what comes of them. A run whose ranks are busy
// waits for them; it is told to them when the run before is told to stop, so that no rank waits for
// the next.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "proto/codec/control.hpp"
#include "proto/codec/pool.hpp"
#include "worker/transport/transport.hpp"

namespace pipewright {

/// What a pool says of its runs. Calls come in the order of PoolFrame's rules: started, then
/// points, progress and logs, then ended.
class RunListener {
 public:
  virtual ~RunListener() = default;
  virtual void started(RunId run) = 0;
  virtual void points(RunId run, std::uint64_t first_index, std::vector<Point> points) = 0;
  virtual void progress(RunId run, const Progress& progress) = 0;
  virtual void log(RunId run, LogLine line) = 0;
  /// `folder` holds the run's files (DESIGN.md section 9) if it has succeeded; the listener takes
  /// care of it from now on.
  virtual void ended(RunId run, RunOutcome outcome, const std::string& message,
                     const std::string& folder, const Value& summary) = 0;
  /// False while the listener has too much to pass on: runs then get no more to do.
  virtual bool keeps_up() const = 0;
};

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
  void cancel_all();
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
