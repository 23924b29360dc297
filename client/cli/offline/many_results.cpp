#include "client/cli/offline/many_results.hpp"

#include <filesystem>
#include <fstream>
#include <limits>

#include "client/cli/offline/run_folder.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace pipewright::cli {

namespace {

namespace fs = std::filesystem;

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream << text;
  stream.close();
  if (!stream) throw DataError(path.string() + ": cannot be written");
}

/// The curve that a run has left.
std::vector<CurvePoint> read_curve(const fs::path& path) {
  std::ifstream stream(path);
  if (!stream) throw DataError(path.string() + ": cannot be opened");
  std::vector<CurvePoint> curve;
  std::string line;
  std::getline(stream, line);
  while (std::getline(stream, line)) {
    const auto cells = split(line, ',');
    // What is not finite is not read as a number.
    curve.push_back({Tick(parse_integer(cells.at(0)).value_or(0)),
                     parse_real(cells.at(2)).value_or(std::numeric_limits<double>::quiet_NaN())});
  }
  return curve;
}

/// The bands of all points whose repeats have all been executed; one point's curves at a time.
void write_bands(const JobRuns& runs, std::span<const Value> results, const std::string& out) {
  std::string text = band_csv_header;
  for (std::uint32_t p = 0; p < runs.points(); ++p) {
    std::vector<std::vector<CurvePoint>> curves;
    for (std::uint32_t i = p * runs.repeats(); i < (p + 1) * runs.repeats(); ++i) {
      if (results[i].is_null()) break;
      curves.push_back(read_curve(fs::path(folder_of_run(out, i)) / "objective.csv"));
    }
    if (curves.size() < runs.repeats()) continue;
    append_band_csv(text, p, confidence_band(curves));
  }
  write_file(fs::path(out) / "band.csv", text);
}

}  // namespace

Value table_part(const Value& summary) {
  Value part = Value::map();
  for (const char* key :
       {"objective_last", "diverged", "stable", "tail", "makespan_ticks", "updates", "note"}) {
    if (const Value* value = summary.find(key)) part.set(key, *value);
  }
  return part;
}

Value many_summary(const Value& job, const JobRuns& runs, std::span<const Value> results,
                   const std::vector<std::string>& failures) {
  Value summary = Value::map();
  summary.set("name", job.at("name"));
  for (const char* key : {"objective", "schedule", "optimizer"}) {
    summary.set(key, job.at(key).as_map().front().first);
  }
  summary.set("points", static_cast<std::int64_t>(runs.points()));
  summary.set("repeats", static_cast<std::int64_t>(runs.repeats()));
  const Value table = run_table(runs, results);
  for (const auto& [key, of_table] : table.as_map()) summary.set(key, of_table);
  if (!failures.empty()) {
    summary.set("failures", Value::List(failures.begin(), failures.end()));
  }
  return summary;
}

void write_tables(const JobRuns& runs, std::span<const Value> results, const Value& summary,
                  const std::string& out) {
  write_file(fs::path(out) / "runs.csv", runs_csv(runs, summary));
  if (runs.repeats() > 1) write_bands(runs, results, out);
  write_file(fs::path(out) / "summary.json", to_json(summary) + "\n");
}

}  // namespace pipewright::cli
