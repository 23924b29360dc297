// Who listens to what comes of the runs of a pool.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/codec/pool.hpp"

namespace pipewright {

/// What a pool says of its runs. Calls come in the order of PoolFrame's rules: started, then
/// points, progress and logs, then ended.
class RunListener {
 public:
  virtual ~RunListener() = default;
  /// `maker` is the program on the run's ranks.
  virtual void started(RunId run, const Maker& maker) = 0;
  virtual void points(RunId run, std::uint64_t first_index, std::vector<Point> points) = 0;
  virtual void progress(RunId run, const Progress& progress) = 0;
  virtual void log(RunId run, LogLine line) = 0;
  /// `folder` holds the run's files (DESIGN.md section 9) if it has succeeded; the listener takes
  /// care of it from now on.
  virtual void ended(RunId run, RunOutcome outcome, const std::string& message,
                     const std::string& folder, const Value& summary) = 0;
  /// Whether checkpoints are stored at all.
  virtual bool stores_checkpoints() const { return false; }
  /// A checkpoint is whole: its files lie in `folder` until the coordinator is told (on_stored)
  /// that they are stored.
  virtual void checkpoint(RunId, Tick, const std::string& /*folder*/,
                          const std::vector<std::string>& /*files*/) {}
  /// The coordinator is to be given (on_piece) a part of a file of the checkpoint that a run goes
  /// on from.
  virtual void want_checkpoint(const CheckpointWanted&) {}
  /// False while the listener has too much to pass on: runs then get no more to do.
  virtual bool keeps_up() const = 0;
};

}  // namespace pipewright
