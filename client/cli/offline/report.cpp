#include "client/cli/offline/report.hpp"

#include <algorithm>
#include <vector>

#include "client/cli/view/facts.hpp"
#include "client/cli/view/table.hpp"
#include "client/cli/view/text.hpp"
#include "core/base/text.hpp"
#include "core/train/job.hpp"

namespace pipewright::cli {

namespace {

using Lines = std::vector<std::pair<std::string, std::string>>;

std::string number(const Value* value, int digits = 4) {
  if (value == nullptr || value->is_null()) return "-";
  return value->is_integer() ? std::to_string(value->as_integer())
                             : format_short(value->as_real(), digits);
}

std::string phases(const Value& delay) {
  const auto phase = [&](const char* key) {
    const Value& one = delay.at(key);
    return "max " + number(one.find("max")) + ", mean " + number(one.find("mean"), 6);
  };
  return "start-up " + phase("start_up") + "; steady " + phase("steady") + " (updates)";
}

std::string ticks(const Value& value, bool tick_is_ns) {
  std::string text = std::to_string(value.as_integer()) + " ticks";
  if (tick_is_ns) text += " (" + format_duration_ns(value.as_integer()) + ")";
  return text;
}

std::string stage_table(const Value::List& stages, int columns_max) {
  std::vector<std::vector<std::string>> rows;
  for (const Value& stage : stages) {
    const auto cell = [&](std::string_view path) { return number(find_path(stage, path)); };
    const Value* bytes = stage.find("stash_weight_bytes_max");
    rows.push_back({cell("stage"), cell("stash_microbatches_max"), cell("stash_versions_max"),
                    bytes == nullptr ? "-" : format_bytes(bytes->as_real()),
                    cell("staleness_versions.start_up.max"),
                    cell("staleness_versions.start_up.mean"), cell("staleness_versions.steady.max"),
                    cell("staleness_versions.steady.mean")});
  }
  return format_table({{"STAGE", Align::right},
                       {"PEAK STASH microbatches", Align::right},
                       {"versions", Align::right},
                       {"of weights", Align::right},
                       {"STALENESS start-up max", Align::right},
                       {"mean", Align::right},
                       {"steady max", Align::right},
                       {"mean", Align::right}},
                      rows, columns_max);
}

void add_results(Lines& lines, const Value& summary) {
  const Value* last = summary.find("objective_last");
  if (last != nullptr && last->is_number()) {
    lines.emplace_back("objective", format_number(last->as_real()) + " at the end, best " +
                                        number(summary.find("objective_best"), 6) +
                                        ", at the start " +
                                        number(summary.find("objective_first"), 6));
  }
  if (const Value* loss = summary.find("last_stage_loss"); loss != nullptr && loss->is_number()) {
    lines.emplace_back("last loss", number(loss, 6));
  }
  if (const Value* wall = summary.find("wall_seconds")) {
    lines.emplace_back("wall time", format_seconds(wall->as_real()));
  }
}

}  // namespace

std::string metrics_report(const Value& metrics, bool tick_is_ns, int columns_max) {
  Lines lines;
  lines.emplace_back("makespan", ticks(metrics.at("makespan_ticks"), tick_is_ns) + ", " +
                                     number(metrics.find("microbatches")) + " microbatches, " +
                                     number(metrics.find("updates")) + " block updates");
  lines.emplace_back("bubble",
                     format_short(metrics.at("bubble").as_real() * 100, 4) +
                         " % of all ticks idle (idle / (stages * makespan)); idle/ideal " +
                         format_short(metrics.at("idle_over_ideal").as_real(), 4));
  lines.emplace_back("delay", phases(metrics.at("delay_updates")));
  for (const auto& line : fact_lines(metrics)) lines.push_back(line);
  add_results(lines, metrics);
  std::string out;
  for (const auto& [name, text] : lines) out += pad_right(name, 11) + text + "\n";
  out += "\n" + histogram_lines(metrics);
  const std::string known = known_table(metrics, columns_max);
  if (!known.empty()) out += "\n" + known;
  return out + "\n" + stage_table(metrics.at("per_stage").as_list(), columns_max);
}

bool uses_durations(const Value& checked_job) {
  bool found = false;
  const auto see = [&](const ParamSpec&, const Value& value) {
    if (value.is_text() && parse_duration_ns(value.as_text()).value_or(0) > 0) found = true;
  };
  Value tree = checked_job;
  visit_params(job_schema(), tree, ParamType::time, see);
  visit_params(job_schema(), tree, ParamType::times, [&](const ParamSpec& spec, Value& value) {
    if (!value.is_list()) return see(spec, value);
    for (const Value& one : value.as_list()) see(spec, one);
  });
  return found;
}

}  // namespace pipewright::cli
