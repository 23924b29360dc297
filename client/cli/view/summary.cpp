#include "client/cli/view/summary.hpp"

#include <algorithm>
#include <vector>

#include "client/cli/view/live.hpp"
#include "client/cli/view/text.hpp"
#include "core/base/text.hpp"
#include "proto/codec/job_file.hpp"

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

std::string format_summary(const Job& job, int columns_max) {
  Rows rows;
  std::string outcome(name_of(job.state));
  if (job.attempt > 1) outcome += " at attempt " + std::to_string(job.attempt);
  if (!job.message.empty()) outcome += ": " + printable(job.message);
  rows.emplace_back("job " + std::to_string(job.id), outcome);
  if (job.objective_last) rows.emplace_back("objective", format_number(*job.objective_last));
  if (job.objective_best) rows.emplace_back("objective, best", format_number(*job.objective_best));
  if (job.started_unix_ms > 0 && job.ended_unix_ms >= job.started_unix_ms) {
    const auto ms = static_cast<double>(job.ended_unix_ms - job.started_unix_ms);
    rows.emplace_back("took", format_seconds(ms / 1000));
  }
  flatten(rows, "", parse_json(job.summary_json, "summary.json"));
  return aligned(rows, columns_max);
}

}  // namespace pipewright::cli
