// One run on ranks of this pool, seen from the coordinator: a RunControl, what its ranks have been
// given and have said, and what of it goes to the listener.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/train/result_files.hpp"
#include "core/train/run_control.hpp"
#include "proto/codec/control.hpp"
#include "worker/runtime/run_checkpoints.hpp"
#include "worker/runtime/run_listener.hpp"
#include "worker/transport/transport.hpp"

namespace pipewright {

/// Collects points in their fixed order.
class PointCollector : public RunSink {
 public:
  void loss(Tick tick, Microbatch microbatch, double value) override;
  void objective(Tick tick, UpdateCount updates, double value) override;
  void validation(Tick tick, UpdateCount updates, double value) override;
  void theory(const TheoryRow& row) override;
  std::vector<Point> points;
  std::uint64_t sent = 0;
};

/// From RankStart to the last RankIdle.
class PoolRun {
 public:
  using Clock = std::chrono::steady_clock;

  /// Tells the ranks; `number` is the one that they know it by. Throws ConfigError.
  PoolRun(Transport& transport, RunListener& listener, const StartRun& start, std::string folder,
          std::uint32_t number);
  ~PoolRun();
  PoolRun(const PoolRun&) = delete;
  PoolRun& operator=(const PoolRun&) = delete;

  /// The ranks that have work of this run: none when they have been told to stop.
  std::span<const std::uint32_t> occupied() const {
    return stopping_ ? std::span<const std::uint32_t>() : ranks_;
  }
  std::span<const std::uint32_t> ranks() const { return ranks_; }
  /// Those that have not said that they are ready.
  std::set<std::uint32_t> starting() const;
  /// Those that have been told to stop and have not left.
  std::set<std::uint32_t> leaving() const;
  RunId run() const { return run_; }

  void on(const ClockQuestion& question);
  void on(RankReady ready);
  void on(const ReportMessage& message);
  void on(FinalMessage message);
  void on(StateChunk chunk);
  void on(const CheckpointStored& stored);
  void on(const CheckpointPiece& piece);
  void on(const RankFault& fault);
  void on(const RankIdle& idle) { idle_.insert(idle.rank); }

  void cancel() { stop(RunOutcome::cancelled, ""); }
  void fail(const std::string& message) { stop(RunOutcome::failed, message); }
  /// Stops it, and the listener hears nothing more of it; a run that was about to end is done
  /// again.
  void give_back();

  /// All ranks have left the run.
  bool over() const { return idle_.size() == ranks_.size(); }
  /// Works for a short while. False when there was nothing to do.
  bool poll();
  /// Once it is over: writes its files and says how it has ended.
  void finish();

 private:
  template <class Work>
  void guarded(Work&& work);
  bool work();
  bool begin();
  void open_checkpoints();
  bool restore();
  bool pass_on_checkpoints();
  int rank_of(Row row) const;
  void start_clock();
  void send_to_all(const ControlMessage& message);
  bool hand_out();
  void flush_points(bool all);
  void send_progress();
  void stop(RunOutcome outcome, const std::string& message);
  void add_provenance(Value& summary);

  Transport& transport_;
  RunListener& listener_;
  RunId run_;
  std::uint32_t number_;
  JobConfig config_;
  std::string folder_;
  Clock::time_point begun_;
  std::vector<std::uint32_t> ranks_;
  std::set<std::uint32_t> ready_, idle_;
  std::vector<Maker> rank_makers_;
  Maker maker_;                 // all of them, once the run has begun
  std::vector<Maker> earlier_;  // of the attempts before, and of what it goes on from
  std::optional<ObjectiveShape> shape_;
  std::vector<HashedFile> data_;
  PointCollector collector_;
  std::unique_ptr<ResultFiles> files_;
  std::unique_ptr<RunControl> control_;
  bool planned_ = false;
  RunCheckpoints checkpoints_;
  std::int32_t restored_ = 0;        // rows that were given their state
  std::vector<int> unacknowledged_;  // ranks whose part of a state has come
  std::int64_t clock_error_ns_max_ = 0;
  std::vector<std::int64_t> outstanding_;  // per row: actions handed out and not reported
  Clock::time_point points_sent_, progress_sent_;
  bool stopping_ = false;
  bool given_back_ = false;
  bool handed_over_ = false;
  RunOutcome outcome_ = RunOutcome::failed;
  std::string message_;
};

}  // namespace pipewright
