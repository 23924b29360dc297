// help: every key of a job file, or the help of a command.
#include <iostream>

#include "client/cli/command.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/train/job.hpp"

namespace pipewright::cli {

namespace {

constexpr const char* job_text =
    R"(A job file is YAML (or JSON). Paths are relative to it. Times are whole ticks (3) or durations
("250us", "5ms"), not both in one job. `--set KEY=VALUE` of the commands sets a key by its dotted
path, e.g. optimizer.sgd.learning_rate=0.05.

Example:

  objective:
    logistic: {data: {libsvm: a9a.libsvm}, l2: 1e-4, batch_size: 64}
  schedule:
    pipedream: {stages: 8, microbatches: 2000}
  optimizer:
    sgd: {learning_rate: 0.1}

Keys:

)";

int help(Program& program, const std::string& topic) {
  if (topic.empty()) {
    std::cout << program.app().get_formatter()->make_help(&program.app(), program.app().get_name(),
                                                          CLI::AppFormatMode::Normal)
              << "\n`pipewright help job` lists every key of a job file.\n";
    return exit_ok;
  }
  if (topic == "job") {
    std::cout << job_text;
    for (const ParamSpec& key : job_schema().children) std::cout << describe_params(key);
    return exit_ok;
  }
  std::vector<std::string> topics{"job"};
  for (CLI::App* command : program.app().get_subcommands({})) {
    if (command->get_name() == topic) {
      std::cout << command->help();
      return exit_ok;
    }
    topics.push_back(command->get_name());
  }
  throw ConfigError("there is no help on '" + topic + "'" + suggest(topic, topics));
}

}  // namespace

void add_help(Program& program) {
  CLI::App* command = program.add_command(
      "help", "Describe every key of a job file (`help job`), or a command", "pipewright help job");
  auto topic = std::make_shared<std::string>();
  command->add_option("TOPIC", *topic, "job, or the name of a command");
  program.on(command, [&program, topic] { return help(program, *topic); });
}

}  // namespace pipewright::cli
