#include "client/cli/figure/sweep_folder.hpp"

#include <array>

#include "client/cli/figure/number_table.hpp"
#include "client/cli/view/text.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "proto/codec/job_file.hpp"

namespace pipewright::cli {

namespace {

namespace fs = std::filesystem;

/// A key by its last part: the labels of a legend are short.
std::string label_of_point(const Value& swept) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : swept.as_map()) {
    std::string text;
    if (value.is_text()) {
      text = value.as_text();
    } else {
      text = value.is_real() ? format_short(value.as_real(), 6) : to_json(value, -1);
    }
    parts.push_back(key.substr(key.rfind('.') + 1) + " = " + text);
  }
  return join(parts, ", ");
}

}  // namespace

bool is_sweep_folder(const fs::path& path) {
  return fs::is_regular_file(path / "runs.csv");
}

SweepFolder open_sweep_folder(const fs::path& path) {
  const std::string file = (path / "summary.json").string();
  const Value summary = JobFile::read(file).tree();
  const Value* groups = summary.find("groups");
  const Value* repeats = summary.find("repeats");
  if (groups == nullptr || !groups->is_list() || repeats == nullptr) {
    throw ConfigError(file + ": it holds no table of runs");
  }
  SweepFolder sweep;
  sweep.path = path;
  if (const Value* name = summary.find("name"); name != nullptr && name->is_text()) {
    sweep.name = name->as_text();
  }
  for (const Value& group : groups->as_list()) {
    sweep.points.push_back(label_of_point(group.at("swept")));
  }
  sweep.repeats = static_cast<std::uint32_t>(repeats->as_integer());
  const Value* best = find_path(summary, "best.by_final.point");
  if (best != nullptr && best->is_integer()) {
    sweep.best = static_cast<std::uint32_t>(best->as_integer());
  }
  return sweep;
}

fs::path folder_of_run(const SweepFolder& sweep, std::uint32_t point, std::uint32_t repeat) {
  const std::string number = std::to_string(point * sweep.repeats + repeat);
  return sweep.path /
         ("run-" + std::string(number.size() < 4 ? 4 - number.size() : 0, '0') + number);
}

FigureCurve read_band(const SweepFolder& sweep, std::uint32_t point) {
  if (sweep.repeats < 2) {
    throw ConfigError(sweep.path.string() +
                      ": a band is over the repeats of a run, and this job has no `repeats`");
  }
  const std::array<std::string, 5> names{"point", "tick", "mean", "low", "high"};
  const auto columns = read_columns((sweep.path / "band.csv").string(), names);
  FigureCurve curve;
  for (std::size_t i = 0; i < columns[0].size(); ++i) {
    if (columns[0][i] != point) continue;
    curve.points.push_back({columns[1][i], columns[2][i]});
    curve.band.push_back({columns[3][i], columns[4][i]});
  }
  return curve;
}

}  // namespace pipewright::cli
