#include "client/cli/offline/plan_input.hpp"

#include <algorithm>
#include <iostream>

#include "client/cli/view/runs_view.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/train/sweep.hpp"
#include "proto/codec/job_file.hpp"
#include "proto/codec/yaml_tree.hpp"

namespace pipewright::cli {

std::string flag_of(const std::string& parameter) {
  std::string flag = "--" + parameter;
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

namespace {

/// Where the value of an option goes in a job's tree; "" when the schedule does not take it.
std::string path_of(const std::string& name, const ScheduleKind& kind) {
  for (const ParamSpec& parameter : kind.parameters) {
    if (parameter.name == name) return "schedule." + kind.kind + "." + name;
  }
  for (const char* group : {"cost", "link"}) {
    const std::string path = std::string(group) + "." + name;
    if (find_spec(job_schema(), path) != nullptr) return path;
  }
  return name == "seed" ? name : "";
}

[[noreturn]] void refuse_option(const std::string& name, const ScheduleKind& kind) {
  std::vector<std::string> flags;
  for (const ParamSpec& parameter : kind.parameters) flags.push_back(flag_of(parameter.name));
  throw ConfigError(flag_of(name) + ": the schedule " + kind.kind +
                    " has no such parameter; it takes " + join(flags, ", "));
}

JobConfig config_from_file(const PlanInput& input) {
  JobFile file = JobFile::read(input.file);
  for (const std::string& assignment : input.sets) file.set(assignment);
  if (!input.kind.empty() && find_path(file.tree(), "schedule." + input.kind) == nullptr) {
    file.set("schedule={" + input.kind + ": {}}");
  }
  if (!input.values.empty()) {
    const Value* schedule = file.tree().find("schedule");
    if (schedule == nullptr || !schedule->is_map() || schedule->as_map().size() != 1) {
      throw ConfigError(file.where("schedule") + "it does not name one schedule");
    }
    const ScheduleKind& kind = ScheduleRegistry::instance().at(schedule->as_map().front().first);
    for (const auto& [name, text] : input.values) {
      const std::string path = path_of(name, kind);
      if (path.empty()) refuse_option(name, kind);
      file.set(path + "=" + text);
    }
  }
  const JobRuns runs(file.checked());
  const JobRun first = runs.run(0);
  if (runs.many()) {
    Value swept = Value::map();
    for (const auto& [key, value] : first.swept) swept.set(key, value);
    const std::string text = format_swept(swept);
    std::cerr << "this job has " << runs.size() << " runs; the plan is of the first"
              << (text.empty() ? "" : ", " + text) << '\n';
  }
  return JobConfig::from(first.job);
}

JobConfig config_from_options(const PlanInput& input) {
  const ScheduleKind& kind = ScheduleRegistry::instance().at(input.kind);
  Value given = Value::map();
  given.set("schedule", Value(Value::Map{{kind.kind, Value::map()}}));
  for (const auto& [name, text] : input.values) {
    const std::string path = path_of(name, kind);
    if (path.empty()) refuse_option(name, kind);
    set_path(given, path, parse_yaml(text, flag_of(name), YamlPlaces::source_only).value);
  }
  // A plan needs no objective and no optimizer; everything else is checked as in a job.
  Value checked = Value::map();
  for (const ParamSpec& spec : job_schema().children) {
    if (spec.name == "objective" || spec.name == "optimizer") {
      checked.set(spec.name, Value(Value::Map{{"none", Value::map()}}));
      continue;
    }
    const Value* value = given.find(spec.name);
    if (value == nullptr) value = &spec.default_value;
    if (!value->is_null()) checked.set(spec.name, check_params(spec, *value, spec.name));
  }
  check_units(checked);
  return JobConfig::from(checked);
}

}  // namespace

std::shared_ptr<PlanInput> add_plan_input(CLI::App* command) {
  auto input = std::make_shared<PlanInput>();
  command->add_option("JOB", input->file, "A job file; without it --schedule says what to plan");
  command
      ->add_option("--set", input->sets, "Sets a key of the job, e.g. link.latency=3; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  std::map<std::string, std::string> helps;  // one option may belong to several schedules
  std::vector<std::string> kinds;
  for (const ScheduleKind& kind : ScheduleRegistry::instance().all()) {
    kinds.push_back(kind.kind);
    for (const ParamSpec& parameter : kind.parameters) {
      std::string& help = helps[parameter.name];
      help = help.empty() ? parameter.help + " (" + kind.kind
                          : help.substr(0, help.size() - 1) + ", " + kind.kind;
      help += ")";
    }
  }
  for (const char* group : {"cost", "link"}) {
    for (const ParamSpec& parameter : find_spec(job_schema(), group)->children) {
      helps.try_emplace(parameter.name, parameter.help + " (" + group + ")");
    }
  }
  helps.try_emplace("seed", find_spec(job_schema(), "seed")->help);
  command->add_option("--schedule", input->kind, "The kind of schedule: " + join(kinds, ", "))
      ->type_name("KIND");
  for (const auto& [name, help] : helps) {
    command
        ->add_option_function<std::string>(
            flag_of(name),
            [input = input.get(), name = name](const std::string& text) {
              input->values[name] = text;
            },
            help)
        ->type_name("VALUE");
  }
  return input;
}

JobConfig plan_config(const PlanInput& input) {
  if (!input.file.empty()) return config_from_file(input);
  if (input.kind.empty()) {
    throw ConfigError("nothing to plan: give a job file, or --schedule KIND with its parameters");
  }
  if (!input.sets.empty()) throw ConfigError("--set changes a job file, and none is given");
  return config_from_options(input);
}

}  // namespace pipewright::cli
