#include "client/cli/offline/execute.hpp"

#include <unistd.h>

#include <chrono>
#include <iostream>

#include "client/cli/command.hpp"
#include "client/cli/offline/checkpoints.hpp"
#include "client/cli/offline/execute_many.hpp"
#include "client/cli/offline/progress.hpp"
#include "client/cli/offline/report.hpp"
#include "client/cli/offline/run_folder.hpp"
#include "client/cli/offline/shown_files.hpp"
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

void say_from_where(std::optional<Tick> tick) {
  if (tick) {
    std::cerr << "going on from the checkpoint of tick " << *tick << '\n';
  } else {
    std::cerr << "no checkpoint to go on from: the run begins at its beginning\n";
  }
}

}  // namespace

int execute(const Value& checked_job, const ExecuteOptions& options) {
  if (JobRuns(checked_job).many()) return execute_many(checked_job, options);
  const auto begin = std::chrono::steady_clock::now();
  check_folder(options.out, options.force, options.resume);
  if (const auto ended = options.resume ? ended_run(options.out, checked_job) : std::nullopt) {
    std::cerr << "the run in " << options.out << " has ended, there is nothing to go on with\n";
    print_result(*ended, checked_job, options);
    return exit_ok;
  }
  const InterruptGuard guard;
  ShownFiles disk;
  HashingFiles inputs(disk);
  const JobConfig config = JobConfig::from(checked_job);
  const auto objective = config.load_objective(inputs);
  std::vector<std::string> refused;
  const auto checkpoints =
      checkpoints_for(config, options.out, inputs.files(), options.resume, refused);
  for (const std::string& why : refused) std::cerr << why << '\n';
  if (options.resume) say_from_where(checkpoints->resume_from());
  FolderFiles files(options.out, options.resume);
  ProgressLine progress;
  RunHooks hooks;
  hooks.progress = [&](const RunControl& control) { progress.update(control); };
  hooks.cancelled = [] { return InterruptGuard::interrupted(); };
  hooks.checkpoints = checkpoints.get();
  RunResult result;
  try {
    result = run_in_process(config, *objective, inputs, {&files, &progress}, hooks);
  } catch (const ConfigError&) {
    progress.clear();
    if (!InterruptGuard::interrupted()) throw;
    std::cerr << "interrupted: the files in " << options.out << " are not complete"
              << (config.checkpoint ? "; --resume goes on with the run" : "") << '\n';
    return exit_interrupted;
  }
  progress.clear();
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  add_provenance(result.summary, checked_job, inputs.files(), wall.count());
  add_continued(result.summary, checkpoints.get());
  files.finish(result.summary, result.weights);
  if (checkpoints) checkpoints->clear();
  print_result(result.summary, checked_job, options);
  return exit_ok;
}

}  // namespace pipewright::cli
