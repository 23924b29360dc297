#include "client/cli/view/summary.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "client/cli/view/facts.hpp"
#include "client/cli/view/live.hpp"
#include "client/cli/view/table.hpp"
#include "client/cli/view/text.hpp"
#include "core/base/text.hpp"
#include "proto/codec/job_file.hpp"
#include "proto/codec/provenance.hpp"

namespace pipewright::cli {

namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;

std::string leaf(const Value& value) {
  if (value.is_text()) return printable(value.as_text());
  if (value.is_real()) return format_number(value.as_real());
  return to_json(value, -1);
}

bool flat(const Value& value) {
  const auto is_leaf = [](const Value& v) { return !v.is_map() && !v.is_list(); };
  return value.is_list() && std::all_of(value.as_list().begin(), value.as_list().end(), is_leaf);
}

void flatten(Rows& rows, const std::string& path, const Value& value) {
  if (value.is_map() && !value.as_map().empty()) {
    for (const auto& [key, inner] : value.as_map()) {
      flatten(rows, path.empty() ? printable(key) : path + "." + printable(key), inner);
    }
  } else if (flat(value)) {
    std::vector<std::string> items;
    for (const Value& item : value.as_list()) items.push_back(leaf(item));
    rows.emplace_back(path, join(items, " "));
  } else if (value.is_list()) {
    for (std::size_t i = 0; i < value.as_list().size(); ++i) {
      flatten(rows, path + "[" + std::to_string(i) + "]", value.as_list()[i]);
    }
  } else if (!value.is_null()) {
    rows.emplace_back(path, leaf(value));
  }
}

std::string aligned(const Rows& rows, int columns_max) {
  int width = 0;
  for (const auto& [key, value] : rows) width = std::max(width, display_width(key));
  std::string out;
  for (const auto& [key, value] : rows) {
    const std::string line = pad_right(key, width) + "  " + value;
    out += (columns_max > 0 ? clip(line, columns_max) : line) + "\n";
  }
  return out;
}

}  // namespace

std::string format_tree(const Value& tree, int columns_max) {
  Rows rows;
  flatten(rows, "", tree);
  return aligned(rows, columns_max);
}

Value parse_json(const std::string& text, const std::string& name) {
  return text.empty() ? Value() : JobFile::parse(text, name).tree();
}

std::string job_name(const Job& job) {
  const Value* name = job.spec.find("name");
  return name != nullptr && name->is_text() ? printable(name->as_text()) : std::string();
}

namespace {

std::string text_of(const Value* value) {
  if (value == nullptr || value->is_null()) return {};
  return value->is_real() ? format_short(value->as_real(), 6) : leaf(*value);
}

/// "start-up max 5, mean 2.5; steady max 3, mean 3"
std::string phases(const Value* value) {
  std::string text;
  if (value == nullptr) return text;
  constexpr std::array<std::pair<const char*, const char*>, 2> names{
      {{"start_up", "start-up"}, {"steady", "steady"}}};
  for (const auto& [key, name] : names) {
    const Value* phase = value->find(key);
    if (phase == nullptr || text_of(phase->find("max")).empty()) continue;
    text += (text.empty() ? "" : "; ") + std::string(name) + " max " + text_of(phase->find("max")) +
            ", mean " + text_of(phase->find("mean"));
  }
  return text;
}

void add_row(Rows& rows, const std::string& name, const std::string& text) {
  if (!text.empty()) rows.emplace_back(name, text);
}

void add_costs(Rows& rows, const Value& summary) {
  if (const std::string ticks = text_of(summary.find("makespan_ticks")); !ticks.empty()) {
    rows.emplace_back("makespan", ticks + " ticks, " + text_of(summary.find("updates")) +
                                      " updates, " + text_of(summary.find("microbatches")) +
                                      " microbatches");
  }
  if (const std::string planned = text_of(summary.find("planned_makespan_ticks"));
      !planned.empty()) {
    rows.emplace_back("clock", "real: a tick is 1 ns, and the plan had " + planned);
  }
  if (const Value* bubble = summary.find("bubble"); bubble != nullptr && bubble->is_number()) {
    rows.emplace_back("bubble", format_short(bubble->as_real() * 100, 3) +
                                    " % of the ticks idle, " +
                                    text_of(summary.find("idle_over_ideal")) + " idle/ideal");
  }
  add_row(rows, "delay, updates", phases(summary.find("delay_updates")));
  if (const Value* wall = summary.find("wall_seconds"); wall != nullptr && wall->is_number()) {
    rows.emplace_back("wall time", format_seconds(wall->as_real()));
  }
}

std::string stage_table(const Value* stages, int columns_max) {
  if (stages == nullptr || !stages->is_list() || stages->as_list().empty()) return {};
  std::vector<std::vector<std::string>> rows;
  for (const Value& stage : stages->as_list()) {
    const auto text = [&](std::string_view path) { return text_of(find_path(stage, path)); };
    const Value* bytes = stage.find("stash_bytes_max");
    rows.push_back({text("stage"), text("staleness_versions.start_up.max"),
                    text("staleness_versions.steady.max"), text("staleness_versions.steady.mean"),
                    text("stash_microbatches_max"), text("stash_versions_max"),
                    bytes == nullptr ? "" : format_bytes(bytes->as_real())});
  }
  return format_table({{"STAGE", Align::right},
                       {"STALENESS start-up", Align::right},
                       {"steady", Align::right},
                       {"mean", Align::right},
                       {"STASH microbatches", Align::right},
                       {"versions", Align::right},
                       {"bytes", Align::right}},
                      rows, columns_max);
}

}  // namespace

std::string format_summary(const Job& job, int columns_max) {
  Rows rows;
  std::string outcome(name_of(job.state));
  if (job.attempt > 1) outcome += " at attempt " + std::to_string(job.attempt);
  if (!job.message.empty()) outcome += ": " + printable(job.message);
  rows.emplace_back("job " + std::to_string(job.id), outcome);
  const Value summary = parse_json(job.summary_json, "summary.json");
  if (job.objective_last) {
    std::string text = format_number(*job.objective_last);
    if (job.objective_best) text += ", best " + format_number(*job.objective_best);
    if (const std::string first = text_of(summary.find("objective_first")); !first.empty()) {
      text += ", at the start " + first;
    }
    rows.emplace_back("objective", text);
  }
  std::string loss = text_of(summary.find("last_stage_loss"));
  if (loss.empty() && job.last_stage_loss) loss = format_number(*job.last_stage_loss);
  add_row(rows, "last-stage loss", loss);
  add_costs(rows, summary);
  for (const auto& [name, text] : fact_lines(summary)) add_row(rows, name, text);
  if (!summary.has("note")) add_row(rows, "note", printable(note_of(job.makers)));
  const bool timed = summary.has("wall_seconds");
  if (!timed && job.started_unix_ms > 0 && job.ended_unix_ms >= job.started_unix_ms) {
    const auto ms = static_cast<double>(job.ended_unix_ms - job.started_unix_ms);
    rows.emplace_back("took", format_seconds(ms / 1000));
  }
  std::string out = aligned(rows, columns_max);
  for (const std::string& part : {histogram_lines(summary), known_table(summary, columns_max),
                                  stage_table(summary.find("per_stage"), columns_max)}) {
    if (!part.empty()) out += "\n" + part;
  }
  return out;
}

}  // namespace pipewright::cli
