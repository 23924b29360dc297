#include "client/cli/offline/execute.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <iostream>

#include "client/cli/command.hpp"
#include "client/cli/offline/progress.hpp"
#include "client/cli/offline/report.hpp"
#include "core/base/error.hpp"
#include "core/train/result_files.hpp"
#include "core/train/run.hpp"
#include "proto/codec/provenance.hpp"

namespace pipewright::cli {

namespace {

namespace fs = std::filesystem;

volatile std::sig_atomic_t interrupted = 0;

/// Ctrl-C ends the run between two turns, so that what was written is closed and said.
class InterruptGuard {
 public:
  InterruptGuard() {
    interrupted = 0;
    before_ = std::signal(SIGINT, [](int) { interrupted = 1; });
  }
  ~InterruptGuard() { std::signal(SIGINT, before_); }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  void (*before_)(int);
};

/// Files of an earlier run may be replaced; anything else is not touched unless forced.
void check_folder(const std::string& out, bool force) {
  std::error_code fault;
  if (!fs::exists(out, fault)) return;
  if (!fs::is_directory(out, fault)) throw ConfigError("--out " + out + ": it is not a folder");
  if (force || fs::is_empty(out)) return;
  const auto& names = ResultFiles::names();
  const auto is_result = [&](const std::string& name) { return fs::exists(fs::path(out) / name); };
  if (std::none_of(names.begin(), names.end(), is_result)) {
    throw ConfigError("--out " + out +
                      ": the folder holds other files and no earlier run; name another one, or "
                      "write into it anyway with --force");
  }
  std::cerr << "replacing the earlier run in " << out << '\n';
}

/// Makes the folder, and takes the files of an earlier run out of it, when the run begins: a job
/// that cannot begin leaves everything as it was.
class FolderFiles : public RunSink {
 public:
  explicit FolderFiles(std::string folder) : folder_(std::move(folder)) {}

  void begin(const ScheduleHeader& header) override {
    std::error_code fault;
    fs::create_directories(folder_, fault);
    if (fault) throw ConfigError("--out " + folder_ + ": cannot be made: " + fault.message());
    for (const std::string& name : ResultFiles::names()) {
      fs::remove(fs::path(folder_) / name, fault);
    }
    files_.emplace(folder_);
    files_->begin(header);
  }
  void action(const TimelineEntry& entry) override { files_->action(entry); }
  void loss(Tick tick, Microbatch m, double value) override { files_->loss(tick, m, value); }
  void objective(Tick tick, UpdateCount updates, double value) override {
    files_->objective(tick, updates, value);
  }
  void finish(const Value& summary, const Tensor& weights) { files_->finish(summary, weights); }

 private:
  std::string folder_;
  std::optional<ResultFiles> files_;
};

void print_result(const Value& summary, const Value& job, const ExecuteOptions& options) {
  if (const Value& diverged = summary.at("diverged"); diverged.is_map()) {
    std::cerr << "diverged at tick " << diverged.at("tick").as_integer() << ": "
              << diverged.at("what").as_text() << '\n';
  }
  if (options.json) {
    std::cout << to_json(summary) << '\n';
    return;
  }
  std::cout << metrics_report(summary, uses_durations(job), table_columns(STDOUT_FILENO))
            << "\nfiles in " << options.out << '\n';
}

}  // namespace

int execute(const Value& checked_job, const ExecuteOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  check_folder(options.out, options.force);
  const InterruptGuard guard;
  DiskFiles disk;
  HashingFiles inputs(disk);
  FolderFiles files(options.out);
  ProgressLine progress;
  RunHooks hooks;
  hooks.progress = [&](const RunControl& control) { progress.update(control); };
  hooks.cancelled = [] { return interrupted != 0; };
  RunResult result;
  try {
    result = run_in_process(JobConfig::from(checked_job), inputs, {&files, &progress}, hooks);
  } catch (const ConfigError&) {
    progress.clear();
    if (interrupted == 0) throw;
    std::cerr << "interrupted: the files in " << options.out << " are not complete\n";
    return exit_interrupted;
  }
  progress.clear();
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  add_provenance(result.summary, checked_job, inputs.files(), wall.count());
  files.finish(result.summary, result.weights);
  print_result(result.summary, checked_job, options);
  return exit_ok;
}

}  // namespace pipewright::cli
