// run, replay: a job in this process, without a daemon and without MPI.
#include <filesystem>

#include "client/cli/command.hpp"
#include "client/cli/offline/execute.hpp"
#include "client/cli/offline/run_folder.hpp"
#include "core/base/error.hpp"
#include "core/train/job.hpp"
#include "proto/codec/job_file.hpp"

namespace pipewright::cli {

namespace {

namespace fs = std::filesystem;

struct Options {
  std::string source;  // a job file, or the folder of a run
  std::vector<std::string> sets;
  ExecuteOptions execute;
};

int run_job(const Options& options) {
  JobFile file = JobFile::read(options.source);
  for (const std::string& assignment : options.sets) file.set(assignment);
  return execute(file.checked(), options.execute);
}

/// The job of the run in a folder, with the schedule that it followed in place of its own.
int replay(const Options& options) {
  const fs::path folder = options.source;
  const std::string schedule = fs::absolute(folder / "schedule.csv").lexically_normal().string();
  std::error_code fault;
  if (fs::exists(folder / "runs.csv", fault)) {
    throw ConfigError(options.source + ": holds many runs; replay one of them, as " +
                      folder_of_run(options.source, 0));
  }
  if (!fs::is_regular_file(schedule, fault)) {
    throw ConfigError(options.source + ": no run to replay, it has no schedule.csv");
  }
  if (fs::equivalent(folder, options.execute.out, fault)) {
    throw ConfigError("--out " + options.execute.out + ": that is the run to be replayed");
  }
  const JobFile summary = JobFile::read((folder / "summary.json").string());
  const Value* job = summary.tree().find("job");
  if (job == nullptr) {
    throw ConfigError(options.source + ": its summary.json does not hold the job");
  }
  Value tree = *job;
  Value file(Value::Map{{"path", schedule}});
  for (const char* key : {"sync", "outer"}) {
    const Value* value = tree.at("schedule").as_map().front().second.find(key);
    if (value != nullptr) file.set(key, *value);
  }
  tree.set("schedule", Value(Value::Map{{"file", std::move(file)}}));
  tree.set("clock", "virtual");
  // The stored schedule has the batches in the order that they were shuffled into.
  tree.set("shuffle", false);
  return execute(check_job(tree), options.execute);
}

void add_common(CLI::App* command, Options& options) {
  command
      ->add_option("--out", options.execute.out,
                   "Folder for the files; made if it is not there. One that holds an earlier "
                   "run is written over, one with other files is refused")
      ->type_name("DIR")
      ->required();
  command->add_flag("--force", options.execute.force, "Also write into a folder with other files");
  command->add_flag("--json", options.execute.json, "The summary as JSON on standard output");
}

}  // namespace

void add_run(Program& program) {
  CLI::App* command = program.add_command(
      "run",
      "Run a job in this process, without daemon and MPI, on the virtual clock. Writes "
      "objective.csv, last_stage_loss.csv, weights.npy, schedule.csv, timeline.csv, summary.json "
      "and, where there are such, validation.csv and theory.csv. Of a job with sweep or repeats "
      "every run has these in "
      "DIR/run-0000, ..., and DIR holds summary.json and runs.csv with the table of runs, and "
      "band.csv with the mean curve of repeats",
      "pipewright run examples/pipedream.yaml --out results --set seed=1");
  auto options = std::make_shared<Options>();
  command->add_option("JOB", options->source, "The job file (YAML or JSON; - for standard input)")
      ->required();
  command->add_option("--set", options->sets, "Sets a key of the job, e.g. seed=3; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  add_common(command, *options);
  command->add_flag("--resume", options->execute.resume,
                    "Go on where an earlier execution into DIR was ended: from the last checkpoint "
                    "(see `checkpoint` in `pipewright help job`), or from the beginning if there "
                    "is none. What has ended is not done again");
  command
      ->add_option("--jobs", options->execute.jobs,
                   "Runs at the same time, of a job with sweep or repeats; 0: one per core")
      ->type_name("N")
      ->capture_default_str();
  program.on(command, [options] { return run_job(*options); });
}

void add_replay(Program& program) {
  CLI::App* command = program.add_command(
      "replay",
      "Run the job of an earlier run again, along the schedule that it followed (its "
      "schedule.csv), in this process on the virtual clock",
      "pipewright replay results --out again");
  auto options = std::make_shared<Options>();
  command->add_option("DIR", options->source, "Folder that `run` or `export` has written")
      ->required();
  add_common(command, *options);
  program.on(command, [options] { return replay(*options); });
}

}  // namespace pipewright::cli
