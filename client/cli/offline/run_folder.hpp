// The folders that `run` and `replay` write, and how Ctrl-C ends them.
#pragma once

#include <csignal>
#include <optional>
#include <string>

#include "core/train/result_files.hpp"

namespace pipewright::cli {

/// Throws ConfigError when `out` is not a folder, or holds files and no earlier run, unless forced.
/// Files of an earlier run may be replaced; that is said on standard error, unless it is to go on.
void check_folder(const std::string& out, bool force, bool resume);

/// Makes a folder and takes the files of earlier runs out of it, and out of its run-NNNN folders;
/// other files stay. With `keep_runs` those folders and the checkpoints stay too.
void begin_folder(const std::string& folder, bool keep_runs = false);

/// "DIR/run-0007"
std::string folder_of_run(const std::string& out, std::uint32_t number);

/// Where the checkpoints of a run in `folder` are.
std::string checkpoint_folder(const std::string& folder);

/// The summary of the run of this checked job that has ended in `folder`, if one has.
std::optional<Value> ended_run(const std::string& folder, const Value& checked_job);

/// Begins its folder when the run begins: a job that cannot begin leaves everything as it was.
class FolderFiles : public RunSink {
 public:
  explicit FolderFiles(std::string folder, bool resume = false)
      : folder_(std::move(folder)), resume_(resume) {}

  void begin(const ScheduleHeader& header) override {
    begin_folder(folder_, resume_);
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
  bool resume_;
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
