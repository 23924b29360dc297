// plan: what a schedule does, without running it.
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <limits>
#include <optional>

#include "client/cli/command.hpp"
#include "client/cli/figure/gantt.hpp"
#include "client/cli/offline/plan_input.hpp"
#include "client/cli/offline/progress.hpp"
#include "client/cli/offline/report.hpp"
#include "client/cli/offline/shown_files.hpp"
#include "client/cli/view/screen.hpp"
#include "client/cli/view/text.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/data/file_source.hpp"
#include "core/schedule/csv.hpp"
#include "core/sim/metrics.hpp"
#include "core/sim/rows.hpp"
#include "core/train/plan_value.hpp"

namespace pipewright::cli {

namespace {

struct Options {
  std::shared_ptr<PlanInput> input;
  std::string format = "summary";
  std::string out, from, to;  // the last two: ticks or durations
};

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
    ShownFiles files;
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

/// The planned actions one by one, and how many there were while it takes long. Nothing is shown
/// between what goes to the terminal itself.
class Walk {
 public:
  explicit Walk(const Planned& planned, const std::ostream& out)
      : simulator_(simulator_of(planned)),
        shown_(&out != &std::cout || !is_terminal(STDOUT_FILENO)) {}

  const ScheduleHeader& header() const { return simulator_.header(); }
  std::optional<TimelineEntry> next() {
    if (++actions_ % 4096 == 0 && shown_) {
      line_.update(std::nullopt, [&] {
        return "planned " + format_si(static_cast<double>(actions_)) + " actions";
      });
    }
    auto entry = simulator_.next();
    if (!entry) line_.clear();
    return entry;
  }

 private:
  Simulator simulator_;
  bool shown_;
  std::int64_t actions_ = 0;
  ProgressLine line_;
};

/// Rows show 10,000 columns at most, each the start of two actions and an update at most.
constexpr std::int64_t row_entries_max = 30'000;

void print_rows(const Planned& planned, std::ostream& out) {
  Walk simulator(planned, out);
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
  for (const std::string& row : rows_of(timeline)) out << row << '\n';
}

void print_csv(const Planned& planned, std::ostream& out) {
  Walk simulator(planned, out);
  out << csv_header(simulator.header()) << '\n';
  std::string text;
  while (const auto entry = simulator.next()) {
    text.clear();
    append_csv(text, entry->action);
    out << text;
  }
}

TimelineMetrics metrics_of(const Planned& planned) {
  const std::ostream nowhere(nullptr);  // the summary is written when all is known
  Walk simulator(planned, nowhere);
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
void print_json(const Planned& planned, std::ostream& out) {
  Walk simulator(planned, out);
  TimelineMetrics metrics(simulator.header());
  out << "{\"schedule\":" << to_json(header_value(simulator.header()), -1) << ",\n\"timeline\":[";
  const char* separator = "\n";
  while (const auto entry = simulator.next()) {
    metrics.add(*entry);
    out << separator << to_json(entry_value(*entry), -1);
    separator = ",\n";
  }
  out << "],\n\"metrics\":" << to_json(plan_value(planned.config, metrics, planned.sizes()), -1)
      << "}\n";
}

void print_summary(const Planned& planned, std::ostream& out) {
  const TimelineMetrics metrics = metrics_of(planned);
  const ScheduleHeader& header = metrics.header();
  out << "schedule   " << header.name << ", " << header.stages << " stages";
  if (header.replicas > 1) out << ", " << header.replicas << " replicas";
  out << ", seed " << header.seed << '\n'
      << metrics_report(plan_value(planned.config, metrics, planned.sizes()),
                        uses_durations(planned.config.tree), table_columns(STDOUT_FILENO));
}

Tick tick_from(const std::string& flag, const std::string& text, Tick otherwise) {
  if (text.empty()) return otherwise;
  auto value = parse_integer(text);
  if (!value) value = parse_duration_ns(text);
  if (!value || *value < 0) {
    throw ConfigError(flag + " " + text + ": expected ticks, or a duration such as 5ms");
  }
  return Tick(*value);
}

/// Whether messages take time at all.
bool has_latency(const JobConfig& config) {
  const Value& link = config.tree.at("link");
  return config.link.latency() > Tick(0) || link.has("bandwidth") || link.has("jitter") ||
         link.has("overrides");
}

void print_svg(const Planned& planned, const Options& options, std::ostream& out) {
  const Tick end_of_time(std::numeric_limits<std::int64_t>::max());
  GanttOptions chart{.from = tick_from("--from", options.from, Tick(0)),
                     .to = tick_from("--to", options.to, end_of_time),
                     .in_durations = uses_durations(planned.config.tree),
                     .messages = has_latency(planned.config)};
  if (chart.to <= chart.from) throw ConfigError("--to must lie behind --from");
  Walk simulator(planned, out);
  Timeline timeline{simulator.header(), {}};
  Tick last{0};
  // A row's actions follow each other: the chart is complete when every row has got past its end.
  std::vector<bool> past(static_cast<std::size_t>(timeline.header.rows()), false);
  std::size_t rows_left = past.size();
  while (rows_left > 0) {
    const auto entry = simulator.next();
    if (!entry) break;
    if (entry->start >= chart.to) {
      const auto row = static_cast<std::size_t>(entry->row.value);
      if (!past[row]) --rows_left;
      past[row] = true;
      continue;
    }
    if (entry->end < chart.from) continue;
    last = std::max(last, entry->end);
    timeline.entries.push_back(*entry);
    if (timeline.entries.size() > gantt_boxes_max) break;  // refused there
  }
  if (timeline.entries.empty()) {
    throw ConfigError("nothing happens from tick " + std::to_string(chart.from.value) + " on");
  }
  chart.to = std::min(chart.to, last);
  out << gantt_svg(timeline, chart);
}

void print(const Planned& planned, const Options& options, std::ostream& out) {
  if (options.format == "rows") print_rows(planned, out);
  if (options.format == "summary") print_summary(planned, out);
  if (options.format == "csv") print_csv(planned, out);
  if (options.format == "json") print_json(planned, out);
  if (options.format == "svg") print_svg(planned, options, out);
}

int plan(const Options& options) {
  if (options.format != "svg" && !(options.from.empty() && options.to.empty())) {
    throw ConfigError("--from and --to cut out a part of a chart: they need --format svg");
  }
  const Planned planned = planned_from(*options.input);
  if (options.out.empty()) {
    print(planned, options, std::cout);
    std::cout.flush();
    if (!std::cout) throw Error("standard output could not be written");
    return exit_ok;
  }
  std::ofstream file(options.out, std::ios::binary);
  if (!file) throw ConfigError("--out " + options.out + ": cannot be written");
  print(planned, options, file);
  if (!file.flush()) throw Error(options.out + " could not be written");
  return exit_ok;
}

}  // namespace

void add_plan(Program& program) {
  CLI::App* command = program.add_command(
      "plan",
      "Show what a schedule does, without running it: its rows (one column per tick), a summary of "
      "makespan, bubble, staleness, delay and stash, the schedule as CSV (the form of a run's "
      "schedule.csv), schedule, timeline and metrics as JSON, or a Gantt chart as SVG",
      "pipewright plan --schedule pipedream --stages 4 --microbatches 8 --format rows\n"
      "  pipewright plan examples/pipedream.yaml --set link.latency=1 --format svg --to 60 --out "
      "plan.svg");
  auto options = std::make_shared<Options>();
  options->input = add_plan_input(command);
  command->add_option("--format", options->format, "rows, summary, csv, json or svg")
      ->check(CLI::IsMember({"rows", "summary", "csv", "json", "svg"}))
      ->capture_default_str();
  command->add_option("--from", options->from, "Where a chart begins: ticks, or a duration")
      ->type_name("TICK");
  command->add_option("--to", options->to, "Where a chart ends")->type_name("TICK");
  command->add_option("--out", options->out, "Write to a file instead of standard output")
      ->type_name("FILE");
  program.on(command, [options] { return plan(*options); });
}

}  // namespace pipewright::cli
