#include "core/train/run_table.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "core/base/check.hpp"
#include "core/base/text.hpp"
#include "core/train/job.hpp"

namespace pipewright {

namespace {

Value swept_map(const JobRuns& runs, std::uint32_t point) {
  Value map = Value::map();
  for (const auto& [key, value] : runs.swept(point)) map.set(key, value);
  return map;
}

Value or_null(const Value& summary, std::string_view path) {
  const Value* value = find_path(summary, path);
  return value == nullptr ? Value() : *value;
}

Value run_row(const JobRuns& runs, std::uint32_t number, const Value& summary) {
  const Value* diverged = summary.find("diverged");
  Value row = Value::map();
  row.set("run", static_cast<std::int64_t>(number));
  row.set("swept", swept_map(runs, number / runs.repeats()));
  row.set("seed", static_cast<std::int64_t>(runs.seed(number)));
  row.set("outcome", summary.is_null()                           ? "failed"
                     : diverged != nullptr && diverged->is_map() ? "diverged"
                                                                 : "succeeded");
  row.set("objective_last", or_null(summary, "objective_last"));
  row.set("tail_mean", or_null(summary, "tail.mean"));
  row.set("stable", or_null(summary, "stable"));
  row.set("makespan_ticks", or_null(summary, "makespan_ticks"));
  row.set("updates", or_null(summary, "updates"));
  return row;
}

/// {mean, low, high} of a column, or null unless every run succeeded and has it.
Value mean_of(std::span<const Value> rows, std::string_view column) {
  std::vector<double> values;
  for (const Value& row : rows) {
    const Value& value = row.at(column);
    if (row.at("outcome") != Value("succeeded") || !value.is_number()) return {};
    values.push_back(value.as_real());
  }
  const MeanOfRepeats mean = mean_with_confidence(values);
  Value result = Value::map();
  result.set("mean", mean.mean);
  result.set("low", mean.interval ? Value(mean.interval->low) : Value());
  result.set("high", mean.interval ? Value(mean.interval->high) : Value());
  return result;
}

Value group_of(std::span<const Value> rows, std::uint32_t point) {
  const auto is_stable = [](const Value& row) { return row.at("stable") == Value(true); };
  Value group = Value::map();
  group.set("point", static_cast<std::int64_t>(point));
  group.set("swept", rows.front().at("swept"));
  group.set("runs", static_cast<std::int64_t>(rows.size()));
  group.set("objective_last", mean_of(rows, "objective_last"));
  group.set("tail_mean", mean_of(rows, "tail_mean"));
  group.set("stable", std::all_of(rows.begin(), rows.end(), is_stable));
  return group;
}

/// The numbers that a key was swept over; empty when it has other values too, or is the seed, which
/// no value is better for.
std::set<double> numbers_of(const Value::List& groups, const std::string& key) {
  std::set<double> numbers;
  for (const Value& group : groups) {
    const Value* value = group.at("swept").find(key);
    if (value == nullptr) continue;
    if (!value->is_number() || key == "seed") return {};
    numbers.insert(value->as_real());
  }
  return numbers;
}

Value edges_of(const Value::List& groups, const Value& group) {
  Value edges = Value::list();
  for (const auto& [key, value] : group.at("swept").as_map()) {
    const std::set<double> numbers = numbers_of(groups, key);
    if (numbers.size() < 2) continue;
    const ParamSpec& spec = *find_spec(job_schema(), key);
    const double number = value.as_real();
    const bool low = number == *numbers.begin() && number > spec.minimum;
    const bool high = number == *numbers.rbegin() && number < spec.maximum;
    if (!low && !high) continue;
    Value edge = Value::map();
    edge.set("key", key);
    edge.set("value", value);
    edge.set("side", low ? "low" : "high");
    edge.set("values", static_cast<std::int64_t>(numbers.size()));
    edges.as_list().push_back(std::move(edge));
  }
  return edges;
}

Value best_of(const Value::List& groups, const char* column, bool only_stable) {
  const Value* best = nullptr;
  double least = 0;
  for (const Value& group : groups) {
    const Value& mean = group.at(column);
    if (mean.is_null() || (only_stable && group.at("stable") != Value(true))) continue;
    const double value = mean.at("mean").as_real();
    if (best != nullptr && !(value < least)) continue;
    best = &group;
    least = value;
  }
  if (best == nullptr) return {};
  Value result = Value::map();
  result.set("point", best->at("point"));
  result.set("swept", best->at("swept"));
  result.set("value", least);
  result.set("edges", edges_of(groups, *best));
  return result;
}

void warn_of_edges(Value::List& warnings, const Value& best, const Value& but_not,
                   const std::string& which) {
  if (best.is_null()) return;
  for (const Value& edge : best.at("edges").as_list()) {
    if (!but_not.is_null()) {
      const Value::List& said = but_not.at("edges").as_list();
      if (std::find(said.begin(), said.end(), edge) != said.end()) continue;
    }
    warnings.emplace_back(which + " stands on the edge of the grid: " + edge.at("key").as_text() +
                          " = " + to_json(edge.at("value"), -1) + " is the " +
                          (edge.at("side") == Value("low") ? "smallest" : "largest") + " of " +
                          to_json(edge.at("values"), -1) + " values; widen the grid");
  }
}

void warn_of_outcomes(Value::List& warnings, const Value::List& rows) {
  const auto count = [&](const char* outcome) {
    return std::count_if(rows.begin(), rows.end(),
                         [&](const Value& row) { return row.at("outcome") == Value(outcome); });
  };
  for (const char* outcome : {"failed", "diverged"}) {
    if (const auto n = count(outcome); n > 0) {
      warnings.emplace_back(std::to_string(n) + " of " + std::to_string(rows.size()) + " runs " +
                            outcome);
    }
  }
}

/// Of runs whose summaries say that their numbers are not of one program on one type of CPU.
void warn_of_notes(Value::List& warnings, std::span<const Value> summaries) {
  static constexpr std::size_t shown_max = 3;
  std::size_t count = 0;
  for (std::size_t i = 0; i < summaries.size(); ++i) {
    const Value* note = summaries[i].is_map() ? summaries[i].find("note") : nullptr;
    if (note == nullptr || !note->is_text() || ++count > shown_max) continue;
    warnings.emplace_back("run " + std::to_string(i) + ": " + note->as_text());
  }
  if (count > shown_max) {
    warnings.emplace_back("and " + std::to_string(count - shown_max) +
                          " more runs whose attempts differ so");
  }
}

/// Whether the repeats of every point gave the same.
bool seeds_do_nothing(const JobRuns& runs, const Value::List& rows) {
  if (runs.repeats() < 2) return false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Value& first = rows[i - i % runs.repeats()];
    for (const char* column : {"objective_last", "tail_mean", "makespan_ticks"}) {
      if (rows[i].at(column) != first.at(column)) return false;
    }
    if (rows[i].at("outcome") != Value("succeeded")) return false;
  }
  return true;
}

}  // namespace

Value run_table(const JobRuns& runs, std::span<const Value> summaries) {
  PW_CHECK(summaries.size() == runs.size(), summaries.size()
                                                << " summaries of " << runs.size() << " runs");
  Value::List rows;
  Value::List groups;
  for (std::uint32_t i = 0; i < runs.size(); ++i) rows.push_back(run_row(runs, i, summaries[i]));
  for (std::uint32_t p = 0; p < runs.points(); ++p) {
    groups.push_back(
        group_of(std::span(rows).subspan(std::size_t{p} * runs.repeats(), runs.repeats()), p));
  }
  const Value by_final = best_of(groups, "objective_last", false);
  const Value by_tail = best_of(groups, "tail_mean", true);
  Value::List warnings;
  warn_of_edges(warnings, by_final, {}, "the best value");
  warn_of_edges(warnings, by_tail, by_final, "the best value by the tail mean of stable runs");
  warn_of_outcomes(warnings, rows);
  warn_of_notes(warnings, summaries);
  if (seeds_do_nothing(runs, rows)) {
    warnings.emplace_back(
        "the repeats of every point are the same: nothing in this job draws from its seed");
  }
  Value table = Value::map();
  table.set("runs", std::move(rows));
  table.set("groups", std::move(groups));
  Value best = Value::map();
  best.set("by_final", by_final);
  best.set("by_tail_mean_of_stable", by_tail);
  table.set("best", std::move(best));
  table.set("warnings", std::move(warnings));
  return table;
}

Value table_part(const Value& summary) {
  Value part = Value::map();
  for (const char* key :
       {"objective_last", "diverged", "stable", "tail", "makespan_ticks", "updates", "note"}) {
    if (const Value* value = summary.find(key)) part.set(key, *value);
  }
  return part;
}

namespace {

std::string csv_cell(const Value* value) {
  if (value == nullptr || value->is_null()) return "";
  if (value->is_real()) return format_number(value->as_real());
  if (!value->is_text()) return to_json(*value, -1);
  const std::string& text = value->as_text();
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::string runs_csv(const JobRuns& runs, const Value& table) {
  static constexpr const char* columns[] = {"seed", "outcome", "objective_last", "tail_mean",
                                            "stable"};
  std::string out = "run";
  std::vector<std::string> keys = runs.keys();
  std::erase(keys, "seed");  // has its column
  for (const std::string& key : keys) out += "," + key;
  for (const char* column : columns) out += std::string(",") + column;
  out += '\n';
  for (const Value& row : table.at("runs").as_list()) {
    out += csv_cell(row.find("run"));
    for (const std::string& key : keys) out += "," + csv_cell(row.at("swept").find(key));
    for (const char* column : columns) out += "," + csv_cell(row.find(column));
    out += '\n';
  }
  return out;
}

void append_band_csv(std::string& out, std::uint32_t point, std::span<const BandRow> band) {
  for (const BandRow& row : band) {
    append_number(out, static_cast<std::int64_t>(point));
    out += ',';
    append_number(out, row.tick.value);
    out += ',';
    append_number(out, row.value.mean);
    out += ',';
    if (row.value.interval) append_number(out, row.value.interval->low);
    out += ',';
    if (row.value.interval) append_number(out, row.value.interval->high);
    out += '\n';
  }
}

}  // namespace pipewright
