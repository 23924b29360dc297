// What the runs of a pool give, as frames to the daemon. Until the daemon says that it has stored
// something, it is kept, and said again to a daemon that comes back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "worker/runtime/daemon_link.hpp"
#include "worker/runtime/point_backlog.hpp"
#include "worker/runtime/run_listener.hpp"

namespace pipewright {

class LinkListener : public RunListener {
 public:
  /// What waits may be so large in memory, the rest is in files under `spool`; beyond `bytes_max`
  /// runs pause. While the daemon is there they pause before anything goes to files.
  static constexpr std::size_t memory_bytes_max = std::size_t{32} << 20;
  static constexpr std::size_t bytes_max = std::size_t{1} << 30;

  explicit LinkListener(std::string spool) : spool_(std::move(spool)) {}
  ~LinkListener() override;

  /// A daemon is there. What it may not know is said to it (again).
  void attach(DaemonLink& link);
  /// It has gone.
  void detach() { link_ = nullptr; }

  void started(RunId run, const Maker& maker) override;
  void points(RunId run, std::uint64_t first_index, std::vector<Point> points) override;
  void progress(RunId run, const Progress& progress) override;
  void log(RunId run, LogLine line) override;
  void ended(RunId run, RunOutcome outcome, const std::string& message, const std::string& folder,
             const Value& summary) override;
  bool stores_checkpoints() const override { return true; }
  void checkpoint(RunId run, Tick tick, const std::string& folder,
                  const std::vector<std::string>& files) override;
  void want_checkpoint(const CheckpointWanted& wanted) override;
  bool keeps_up() const override;

  void on(const PointsStored& stored);
  void on(const RunEndStored& stored);
  /// False when no such checkpoint waits.
  bool on(const CheckpointStored& stored);
  void on(const CheckpointPiece& piece) { kept(piece.run).wanted.reset(); }
  /// Runs whose end is not known to be stored.
  std::vector<RunId> ended_runs() const;

  /// Sends some of what waits: of each run its points, then a checkpoint, then the files of one
  /// that has ended, then its end. False when there was nothing to do.
  bool pump();

 private:
  static constexpr std::size_t queued_bytes_max = std::size_t{8} << 20;

  /// Files of a folder that are sent one after the other in parts.
  struct Upload {
    std::string folder;
    std::vector<std::string> files;
    std::size_t file = 0;
    std::uint64_t offset = 0;

    bool done() const { return file == files.size(); }
    void rewind() { file = offset = 0; }
    template <class Chunk>
    bool send_part(DaemonLink& link, RunId run);
  };
  struct Checkpoint {
    Tick tick;
    Upload files;
    bool is_sent = false;
  };
  struct Kept {
    Kept(const std::string& file, BacklogUse& use) : points(file, use) {}
    std::optional<Maker> maker;  // of one that has started
    PointBacklog points;
    std::deque<LogLine> log;  // that has not been sent
    std::optional<CheckpointWanted> wanted;
    std::optional<Checkpoint> checkpoint;
    std::optional<RunEnded> end;
    Upload files;
    bool end_is_sent = false;
  };

  Kept& kept(RunId run);
  bool send_next(RunId run, Kept& kept);
  bool send_checkpoint(RunId run, Kept& kept);
  bool has_room() const { return link_ != nullptr && link_->queued_bytes() < queued_bytes_max; }

  std::string spool_;
  DaemonLink* link_ = nullptr;
  BacklogUse use_{.memory_bytes_max = memory_bytes_max};
  std::map<RunId, Kept> runs_;
};

}  // namespace pipewright
