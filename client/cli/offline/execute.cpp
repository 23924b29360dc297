#include "client/cli/offline/execute.hpp"

#include <unistd.h>

#include <chrono>
#include <iostream>

#include "client/cli/command.hpp"
#include "client/cli/offline/execute_many.hpp"
#include "client/cli/offline/progress.hpp"
#include "client/cli/offline/report.hpp"
#include "client/cli/offline/run_folder.hpp"
#include "core/base/error.hpp"
#include "core/train/run.hpp"
#include "core/train/sweep.hpp"
#include "proto/codec/provenance.hpp"

namespace pipewright::cli {

namespace {

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
  if (JobRuns(checked_job).many()) return execute_many(checked_job, options);
  const auto begin = std::chrono::steady_clock::now();
  check_folder(options.out, options.force);
  const InterruptGuard guard;
  DiskFiles disk;
  HashingFiles inputs(disk);
  FolderFiles files(options.out);
  ProgressLine progress;
  RunHooks hooks;
  hooks.progress = [&](const RunControl& control) { progress.update(control); };
  hooks.cancelled = [] { return InterruptGuard::interrupted(); };
  RunResult result;
  try {
    result = run_in_process(JobConfig::from(checked_job), inputs, {&files, &progress}, hooks);
  } catch (const ConfigError&) {
    progress.clear();
    if (!InterruptGuard::interrupted()) throw;
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
