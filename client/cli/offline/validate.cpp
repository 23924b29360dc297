// validate: is this job right, and what will it take?
#include <iostream>

#include "client/cli/command.hpp"
#include "client/cli/offline/estimate.hpp"
#include "client/cli/offline/report.hpp"
#include "client/cli/offline/shown_files.hpp"
#include "client/cli/view/text.hpp"
#include "core/base/text.hpp"
#include "core/train/sweep.hpp"
#include "proto/codec/job_file.hpp"

namespace pipewright::cli {

namespace {

struct Options {
  std::string file;
  std::vector<std::string> sets;
  bool json = false;
};

/// A few seconds of walking; what is longer goes on as it began.
constexpr std::int64_t actions_max = 5'000'000;

void print_text(const Estimate& e, bool tick_is_ns) {
  const auto bytes = [](std::int64_t n) { return format_bytes(static_cast<double>(n)); };
  std::cout << "data       " << e.shape.examples << " examples in " << e.shape.batches
            << " batches of " << e.shape.batch_size << "; " << e.shape.parameters()
            << " parameters in " << e.stages << " stages\n"
            << "makespan   " << (e.extrapolated ? "about " : "") << e.makespan_ticks << " ticks";
  if (tick_is_ns) std::cout << " (" << format_duration_ns(e.makespan_ticks) << ")";
  std::cout << ", " << e.updates << " block updates, " << e.observations
            << " values of the objective\n"
            << "messages   " << e.messages << " between stages and " << e.evaluation_messages
            << " for the objective, " << bytes(e.message_bytes) << '\n'
            << "memory     about " << bytes(e.memory_bytes)
            << " for data, weights and stash of all stages, at most "
            << bytes(e.memory_bytes_max_of_a_stage) << " on one\n"
            << "disk       about " << bytes(e.disk_bytes) << " of result files\n";
}

/// Points may differ in all that is estimated.
void print_runs(const JobRuns& runs) {
  std::cout << "runs       " << runs.size() << ": " << runs.points()
            << (runs.points() == 1 ? " point" : " points") << ", each under " << runs.repeats()
            << (runs.repeats() == 1 ? " seed" : " seeds") << "; what follows is of the first\n";
}

int validate_job(const Options& options) {
  JobFile file = JobFile::read(options.file);
  for (const std::string& assignment : options.sets) file.set(assignment);
  const Value checked = file.checked();
  ShownFiles disk;
  const JobRuns runs(checked);
  const JobRun first = runs.run(0);
  const Estimate e = estimate(JobConfig::from(first.job), disk, actions_max);
  if (options.json) {
    Value value = e.to_value();
    value.set("runs", static_cast<std::int64_t>(runs.size()));
    std::cout << to_json(value) << '\n';
  } else {
    std::cout << "OK\n";
    if (runs.many()) print_runs(runs);
    print_text(e, uses_durations(first.job));
  }
  return exit_ok;
}

}  // namespace

void add_validate(Program& program) {
  CLI::App* command = program.add_command(
      "validate",
      "Check a job and its data, and estimate its makespan, messages, memory and disk. Exit status "
      "2 when something is wrong, with what and where on standard error",
      "pipewright validate examples/pipedream.yaml");
  auto options = std::make_shared<Options>();
  command->add_option("JOB", options->file, "The job file (YAML or JSON; - for standard input)")
      ->required();
  command->add_option("--set", options->sets, "Sets a key of the job, e.g. seed=3; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_flag("--json", options->json, "The estimate as JSON");
  program.on(command, [options] { return validate_job(*options); });
}

}  // namespace pipewright::cli
