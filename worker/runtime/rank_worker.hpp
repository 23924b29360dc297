// One rank's part in runs: hosts rows, executes windows, reports to the coordinator (rank 0 of the
// world). A rank takes part in one run at a time; what it is told of the next while it leaves one
// waits until it has.
#pragma once

#include <chrono>
#include <deque>
#include <exception>
#include <memory>
#include <optional>

#include "proto/codec/control.hpp"
#include "worker/runtime/objective_cache.hpp"
#include "worker/transport/transport.hpp"

namespace pipewright {

class RankRun;

/// The run's rank that hosts a row: rows are dealt out in contiguous parts.
constexpr int rank_of_row(int row, int rows, int ranks) {
  return static_cast<int>(static_cast<std::int64_t>(row) * ranks / rows);
}

class RankWorker {
 public:
  explicit RankWorker(Transport& transport);
  ~RankWorker();

  /// RankStart, ClockAnswer, ClockStart, WindowMessage, RankStop or RankShutDown from the
  /// coordinator.
  void on_control(ControlMessage message);
  /// Works for a short while. False when there was nothing to do.
  bool poll();

  /// After a turn in which nothing could be done: how long it is (at least) until a row can go on
  /// by itself. Nothing when all wait for messages.
  std::optional<std::chrono::nanoseconds> due_in() const;

  bool has_run() const { return run_ != nullptr; }
  /// It has a run on the real clock: what comes late is seen late.
  bool in_real_time() const;
  bool shut_down() const { return shut_down_; }

 private:
  void report(const ControlMessage& message);
  void start(RankStart start);
  void fail(const std::exception& error);
  void obey(ControlMessage message);

  Transport& transport_;
  ObjectiveCache objectives_;
  std::unique_ptr<RankRun> run_;
  std::deque<ControlMessage> later_;  // for when the run has been left
  bool shut_down_ = false;
};

}  // namespace pipewright
