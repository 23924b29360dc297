// What the runs of a pool give, as frames to the daemon.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "worker/runtime/daemon_link.hpp"
#include "worker/runtime/run_listener.hpp"

namespace pipewright {

class LinkListener : public RunListener {
 public:
  explicit LinkListener(DaemonLink& link) : link_(link) {}
  ~LinkListener() override;

  void started(RunId run) override { link_.send(RunStarted{run}); }
  void points(RunId run, std::uint64_t first_index, std::vector<Point> points) override {
    link_.send(RunPoints{run, first_index, std::move(points)});
  }
  void progress(RunId run, const Progress& progress) override {
    link_.send(RunProgress{run, progress});
  }
  void log(RunId run, LogLine line) override { link_.send(RunLog{run, std::move(line)}); }
  void ended(RunId run, RunOutcome outcome, const std::string& message, const std::string& folder,
             const Value& summary) override;
  bool stores_checkpoints() const override { return true; }
  void checkpoint(RunId run, Tick tick, const std::string& folder,
                  const std::vector<std::string>& files) override {
    checkpoints_.push_back({{run, tick}, folder, files, 0, 0});
  }
  void want_checkpoint(const CheckpointWanted& wanted) override { link_.send(wanted); }
  bool keeps_up() const override { return link_.queued_bytes() < queued_bytes_max; }

  /// Sends the next part of the files of a checkpoint, or of a run that has ended, and its end
  /// after them.
  bool upload();

 private:
  static constexpr std::size_t queued_bytes_max = std::size_t{8} << 20;

  struct Upload {
    RunEnded end;
    std::string folder;
    std::size_t file;
    std::uint64_t offset;
  };

  struct CheckpointUpload {
    CheckpointSent end;
    std::string folder;
    std::vector<std::string> files;
    std::size_t file;
    std::uint64_t offset;
  };

  void send_part(Upload& upload);
  void send_part(CheckpointUpload& upload);

  DaemonLink& link_;
  std::deque<Upload> uploads_;
  std::deque<CheckpointUpload> checkpoints_;
};

}  // namespace pipewright
