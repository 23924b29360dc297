#include "client/cli/view/runs_view.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "client/cli/view/table.hpp"
#include "client/cli/view/text.hpp"
#include "core/base/text.hpp"

namespace pipewright::cli {

namespace {

std::string last_part(const std::string& key) {
  return key.substr(key.rfind('.') + 1);
}

/// The keys of all lines in the order in which they come first, and how each is called.
std::vector<std::pair<std::string, std::string>> names_of(const Value::List& lines) {
  std::vector<std::pair<std::string, std::string>> keys;
  std::map<std::string, int> uses;
  for (const Value& line : lines) {
    for (const auto& [key, value] : line.at("swept").as_map()) {
      const auto same = [&, &name = key](const auto& known) { return known.first == name; };
      if (std::any_of(keys.begin(), keys.end(), same)) continue;
      keys.emplace_back(key, last_part(key));
      ++uses[last_part(key)];
    }
  }
  for (auto& [key, name] : keys) {
    if (uses[name] > 1) name = key;
  }
  return keys;
}

std::string cell_of(const Value* value) {
  if (value == nullptr || value->is_null()) return "-";
  if (value->is_text()) return printable(value->as_text());
  if (value->is_bool()) return value->as_bool() ? "yes" : "no";
  return value->is_real() ? format_short(value->as_real(), 6) : to_json(*value, -1);
}

/// "0.693 ± 0.002" of {mean, low, high}, or a number.
std::string mean_cell(const Value& value) {
  if (!value.is_map()) return cell_of(&value);
  std::string text = cell_of(value.find("mean"));
  if (value.at("high").is_number()) {
    text += " ± " + format_short(value.at("high").as_real() - value.at("mean").as_real(), 2);
  }
  return text;
}

double objective_of(const Value& line) {
  const Value& value = line.at("objective_last");
  const Value* number = value.is_map() ? value.find("mean") : &value;
  const bool is_there = number->is_number() && std::isfinite(number->as_real());
  return is_there ? number->as_real() : std::numeric_limits<double>::infinity();
}

/// Which lines are shown, in their order.
std::vector<std::size_t> shown_lines(const Value::List& lines, std::size_t rows_max) {
  std::vector<std::size_t> order(lines.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (order.size() <= rows_max) return order;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return objective_of(lines[a]) < objective_of(lines[b]);
  });
  order.resize(rows_max);
  std::sort(order.begin(), order.end());
  return order;
}

std::string mark_of(const Value& best, std::int64_t point) {
  const auto is_best = [&](const char* by) {
    const Value* one = best.find(by);
    return one != nullptr && one->is_map() && one->at("point") == Value(point);
  };
  std::string mark = is_best("by_final") ? "best" : "";
  if (is_best("by_tail_mean_of_stable")) mark += mark.empty() ? "best tail" : ", best tail";
  return mark;
}

void append_best(std::string& out, const Value& best, const char* by, const std::string& label) {
  const Value* one = best.find(by);
  if (one == nullptr || !one->is_map()) {
    out += label + "none\n";
    return;
  }
  const std::string swept = format_swept(one->at("swept"));
  out += label + format_short(one->at("value").as_real(), 6) +
         (swept.empty() ? "" : " with " + swept) + "\n";
}

std::string lines_table(const Value& table, const Value::List& lines, bool has_repeats,
                        const std::vector<std::size_t>& shown, int columns_max) {
  const auto names = names_of(lines);
  std::vector<Column> columns{{has_repeats ? "POINT" : "RUN", Align::right}};
  for (const auto& [key, name] : names) columns.push_back({printable(name), Align::right, true});
  columns.push_back({has_repeats ? "RUNS" : "OUTCOME", has_repeats ? Align::right : Align::left});
  columns.push_back({"OBJECTIVE", Align::right});
  columns.push_back({"TAIL MEAN", Align::right});
  columns.push_back({"STABLE"});
  columns.push_back({""});
  std::vector<std::vector<std::string>> rows;
  for (const std::size_t i : shown) {
    const Value& line = lines[i];
    std::vector<std::string> row{cell_of(line.find(has_repeats ? "point" : "run"))};
    for (const auto& [key, name] : names) row.push_back(cell_of(line.at("swept").find(key)));
    row.push_back(cell_of(line.find(has_repeats ? "runs" : "outcome")));
    row.push_back(mean_cell(line.at("objective_last")));
    row.push_back(mean_cell(line.at("tail_mean")));
    row.push_back(cell_of(line.find("stable")));
    row.push_back(mark_of(table.at("best"), static_cast<std::int64_t>(i)));
    rows.push_back(std::move(row));
  }
  return format_table(columns, rows, columns_max);
}

}  // namespace

std::string format_swept(const Value& swept) {
  Value line = Value::map();
  line.set("swept", swept);
  std::vector<std::string> parts;
  for (const auto& [key, name] : names_of({line})) {
    parts.push_back(printable(name) + " = " + cell_of(swept.find(key)));
  }
  return join(parts, ", ");
}

std::string format_run_table(const Value& table, int columns_max, std::size_t rows_max) {
  const Value::List& runs = table.at("runs").as_list();
  const Value::List& groups = table.at("groups").as_list();
  const bool has_repeats = groups.size() < runs.size();
  const Value::List& lines = has_repeats ? groups : runs;
  const auto shown = shown_lines(lines, rows_max);
  std::string out = lines_table(table, lines, has_repeats, shown, columns_max);
  if (shown.size() < lines.size()) {
    out += "the " + std::to_string(shown.size()) + " of " + std::to_string(lines.size()) +
           (has_repeats ? " points" : " runs") + " with the lowest objective\n";
  }
  if (has_repeats) out += "means over repeats, ± 95 % confidence\n";
  out += '\n';
  append_best(out, table.at("best"), "by_final", "best at the end           ");
  append_best(out, table.at("best"), "by_tail_mean_of_stable", "best tail mean, if stable ");
  for (const Value& warning : table.at("warnings").as_list()) {
    out += "warning: " + printable(warning.as_text()) + "\n";
  }
  return out;
}

}  // namespace pipewright::cli
