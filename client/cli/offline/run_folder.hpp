// The folders that `run` and `replay` write, and how Ctrl-C ends them.
#pragma once

#include <csignal>
#include <optional>
#include <string>

#include "core/train/result_files.hpp"

namespace pipewright::cli {

/// Throws ConfigError when `out` is not a folder, or holds files and no earlier run, unless forced.
/// Files of an earlier run may be replaced; that is said on standard error.
void check_folder(const std::string& out, bool force);

/// Makes a folder and takes the files of earlier runs out of it, and out of its run-NNNN folders;
/// other files stay.
void begin_folder(const std::string& folder);

/// "DIR/run-0007"
std::string folder_of_run(const std::string& out, std::uint32_t number);

/// Begins its folder when the run begins: a job that cannot begin leaves everything as it was.
class FolderFiles : public RunSink {
 public:
  explicit FolderFiles(std::string folder) : folder_(std::move(folder)) {}

  void begin(const ScheduleHeader& header) override {
    begin_folder(folder_);
    files_.emplace(folder_);
    files_->begin(header);
  }
  void action(const TimelineEntry& entry) override { files_->action(entry); }
  void loss(Tick tick, Microbatch m, double value) override { files_->loss(tick, m, value); }
  void objective(Tick tick, UpdateCount updates, double value) override {
    files_->objective(tick, updates, value);
  }
  void validation(Tick tick, UpdateCount updates, double value) override {
    files_->validation(tick, updates, value);
  }
  void theory(const TheoryRow& row) override { files_->theory(row); }
  void finish(const Value& summary, const Tensor& weights) { files_->finish(summary, weights); }

 private:
  std::string folder_;
  std::optional<ResultFiles> files_;
};

/// Ctrl-C ends runs between two turns, so that what was written is closed and said.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  static bool interrupted();

 private:
  void (*before_)(int);
};

}  // namespace pipewright::cli
