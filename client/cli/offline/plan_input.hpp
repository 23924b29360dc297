// What `plan` is asked for: a job file, or a schedule by its kind and parameters. The options come
// from what the plug-ins declare, so a new schedule has its options without a line here.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/train/job.hpp"

namespace pipewright::cli {

struct PlanInput {
  std::string file;  // of a job; empty: the options say it all
  std::vector<std::string> sets;
  std::string kind;
  std::map<std::string, std::string> values;  // "in_flight_max" -> its text, as far as given
};

/// Adds --schedule, one option per parameter of any schedule, and those of cost and link.
std::shared_ptr<PlanInput> add_plan_input(CLI::App* command);

/// The job as far as a plan needs it (schedule, cost, link, seed). Throws ConfigError.
JobConfig plan_config(const PlanInput& input);

/// "--in-flight-max" of "in_flight_max".
std::string flag_of(const std::string& parameter);

}  // namespace pipewright::cli
