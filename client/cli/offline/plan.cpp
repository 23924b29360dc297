// plan: what a schedule does, without running it.
#include <unistd.h>

#include <iostream>
#include <optional>

#include "client/cli/command.hpp"
#include "client/cli/offline/plan_input.hpp"
#include "client/cli/offline/report.hpp"
#include "client/cli/view/screen.hpp"
#include "core/base/error.hpp"
#include "core/data/file_source.hpp"
#include "core/schedule/csv.hpp"
#include "core/sim/metrics.hpp"
#include "core/sim/rows.hpp"
#include "core/train/plan_value.hpp"

namespace pipewright::cli {

namespace {

/// A job, and the sizes of its problem where it has an objective whose data can be read: what a
/// bandwidth costs, and what is sent and kept, depends on them.
struct Planned {
  JobConfig config;
  std::optional<ObjectiveShape> shape;

  const ObjectiveShape* sizes() const { return shape ? &*shape : nullptr; }
};

Planned planned_from(const PlanInput& input) {
  Planned planned{plan_config(input), std::nullopt};
  if (input.file.empty()) return planned;  // there is no objective
  try {
    DiskFiles files;
    planned.shape = planned.config.load_objective(files)->shape();
    planned.config = planned.config.sized(*planned.shape);
  } catch (const DataError& error) {
    std::cerr << "planned without the sizes of the problem: " << error.what() << '\n';
  }
  return planned;
}

Simulator simulator_of(const Planned& planned) {
  return Simulator(planned.config.make_schedule(planned.shape ? planned.shape->batches : 0),
                   planned.config.cost, planned.config.link);
}

/// Rows show 10,000 columns at most, each the start of two actions and an update at most.
constexpr std::int64_t row_entries_max = 30'000;

void print_rows(const Planned& planned) {
  Simulator simulator = simulator_of(planned);
  Timeline timeline{simulator.header(), {}};
  const auto entries_max = static_cast<std::size_t>(row_entries_max * timeline.header.rows());
  while (const auto entry = simulator.next()) {
    if (timeline.entries.size() == entries_max) {
      throw ConfigError(
          "the plan is more than 10000 columns wide; rows cannot show it (try --format summary, "
          "csv or json)");
    }
    timeline.entries.push_back(*entry);
  }
  for (const std::string& row : rows_of(timeline)) std::cout << row << '\n';
}

void print_csv(const Planned& planned) {
  Simulator simulator = simulator_of(planned);
  std::cout << csv_header(simulator.header()) << '\n';
  std::string text;
  while (const auto entry = simulator.next()) {
    text.clear();
    append_csv(text, entry->action);
    std::cout << text;
  }
}

TimelineMetrics metrics_of(const Planned& planned) {
  Simulator simulator = simulator_of(planned);
  TimelineMetrics metrics(simulator.header());
  while (const auto entry = simulator.next()) metrics.add(*entry);
  return metrics;
}

Value header_value(const ScheduleHeader& header) {
  Value value = Value::map();
  value.set("kind", header.name);
  value.set("stages", header.stages);
  value.set("microbatches", header.microbatches);
  value.set("replicas", header.replicas);
  value.set("seed", static_cast<std::int64_t>(header.seed));
  return value;
}

Value entry_value(const TimelineEntry& entry) {
  Value value = Value::map();
  value.set("stage", static_cast<std::int64_t>(entry.action.stage.value));
  value.set("kind", name_of(entry.action.kind));
  value.set("microbatch", entry.action.microbatch.value);
  value.set("replica", static_cast<std::int64_t>(entry.action.replica.value));
  value.set("start", entry.start.value);
  value.set("end", entry.end.value);
  return value;
}

/// Written as it goes: a long plan need not fit into memory.
void print_json(const Planned& planned) {
  Simulator simulator = simulator_of(planned);
  TimelineMetrics metrics(simulator.header());
  std::cout << "{\"schedule\":" << to_json(header_value(simulator.header()), -1)
            << ",\n\"timeline\":[";
  const char* separator = "\n";
  while (const auto entry = simulator.next()) {
    metrics.add(*entry);
    std::cout << separator << to_json(entry_value(*entry), -1);
    separator = ",\n";
  }
  std::cout << "],\n\"metrics\":"
            << to_json(plan_value(planned.config, metrics, planned.sizes()), -1) << "}\n";
}

void print_summary(const Planned& planned) {
  const TimelineMetrics metrics = metrics_of(planned);
  const ScheduleHeader& header = metrics.header();
  std::cout << "schedule   " << header.name << ", " << header.stages << " stages";
  if (header.replicas > 1) std::cout << ", " << header.replicas << " replicas";
  std::cout << ", seed " << header.seed << '\n'
            << metrics_report(plan_value(planned.config, metrics, planned.sizes()),
                              uses_durations(planned.config.tree), table_columns(STDOUT_FILENO));
}

int plan(const PlanInput& input, const std::string& format) {
  const Planned planned = planned_from(input);
  if (format == "rows") print_rows(planned);
  if (format == "summary") print_summary(planned);
  if (format == "csv") print_csv(planned);
  if (format == "json") print_json(planned);
  std::cout.flush();
  if (!std::cout) throw Error("standard output could not be written");
  return exit_ok;
}

}  // namespace

void add_plan(Program& program) {
  CLI::App* command = program.add_command(
      "plan",
      "Show what a schedule does, without running it: its rows (one column per tick), a summary of "
      "makespan, bubble, staleness, delay and stash beside the known formulas, the schedule as CSV "
      "(the form of a run's schedule.csv), or schedule, timeline and metrics as JSON",
      "pipewright plan --schedule pipedream --stages 4 --microbatches 8 --format rows");
  const auto input = add_plan_input(command);
  auto format = std::make_shared<std::string>("summary");
  command->add_option("--format", *format, "rows, summary, csv or json")
      ->check(CLI::IsMember({"rows", "summary", "csv", "json"}))
      ->capture_default_str();
  program.on(command, [input, format] { return plan(*input, *format); });
}

}  // namespace pipewright::cli
