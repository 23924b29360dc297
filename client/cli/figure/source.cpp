#include "client/cli/figure/source.hpp"

#include <stdlib.h>

#include <algorithm>
#include <cstdint>

#include "client/cli/figure/fetch.hpp"
#include "client/cli/figure/number_table.hpp"
#include "client/cli/figure/run_folder.hpp"
#include "client/cli/figure/sweep_folder.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace pipewright::cli {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "pipewright-plot-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw Error("cannot make a temporary folder");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

namespace {

constexpr std::size_t sweep_curves_max = 100;

/// The series of a run that were asked for.
std::vector<std::string> run_series(const CurveChoice& choice) {
  std::vector<std::string> series = choice.series;
  if (series.empty()) series.emplace_back("objective");
  for (std::string& one : series) {
    if (choice.gap && one == "objective") one = "gap";
  }
  return series;
}

std::string run_x(const CurveChoice& choice) {
  if (choice.x.empty()) return "tick";
  static const std::vector<std::string> axes{"tick", "updates", "microbatches"};
  if (std::find(axes.begin(), axes.end(), choice.x) == axes.end()) {
    throw ConfigError("--x " + choice.x + suggest(choice.x, axes));
  }
  return choice.x;
}

SourceCurves run_curves(const CurveChoice& choice, const fs::path& path, const std::string& other) {
  const std::string x = run_x(choice);
  const RunFolder folder = open_run_folder(path);
  SourceCurves source{folder.name, other};
  const std::vector<std::string> all = run_series(choice);
  for (const std::string& series : all) {
    source.curves.push_back(read_curve(folder, x, series, choice.optimum));
    source.curves.back().label = series;
  }
  source.x_label = label_of_x(x);
  if (all.size() == 1) source.y_label = label_of_series(all.front());
  source.in_durations = folder.in_durations && x == "tick";
  return source;
}

/// The curves of a sweep's runs, of one point or of all; of each point one with --band.
SourceCurves sweep_curves(const CurveChoice& choice, const fs::path& path,
                          const std::string& other) {
  const SweepFolder sweep = open_sweep_folder(path);
  SourceCurves source{sweep.name, other};
  if (choice.best && !sweep.best) throw ConfigError(path.string() + ": no run of it ended well");
  const auto count = static_cast<std::uint32_t>(sweep.points.size());
  const std::uint32_t begin = choice.best ? *sweep.best : 0;
  const std::uint32_t end = choice.best ? *sweep.best + 1 : count;
  if (choice.band &&
      (run_x(choice) != "tick" || run_series(choice) != std::vector<std::string>{"objective"})) {
    throw ConfigError("--band shows the objective by tick: leave out --x, --series and --gap");
  }
  for (std::uint32_t point = begin; point < end; ++point) {
    for (std::uint32_t repeat = 0; repeat < sweep.repeats; ++repeat) {
      const fs::path folder = folder_of_run(sweep, point, repeat);
      if (!fs::exists(folder / "objective.csv")) continue;  // it failed
      SourceCurves run = run_curves(choice, folder, "");
      if (choice.band) run.curves = {read_band(sweep, point)};
      for (FigureCurve& curve : run.curves) {
        std::vector<std::string> words;
        if (!sweep.points[point].empty()) words.push_back(sweep.points[point]);
        if (sweep.repeats > 1 && !choice.band) words.push_back("repeat " + std::to_string(repeat));
        if (run.curves.size() > 1) words.push_back(curve.label);
        curve.label = join(words, ", ");
        source.curves.push_back(std::move(curve));
      }
      source.x_label = run.x_label;
      source.y_label = run.y_label;
      source.in_durations = run.in_durations;
      if (choice.band) break;
      if (source.curves.size() > sweep_curves_max) {
        throw ConfigError(path.string() + ": its runs are more than " +
                          std::to_string(sweep_curves_max) +
                          " curves; draw the best with --best, means with --band, or single runs "
                          "by their folders (" +
                          path.filename().string() + "/run-0000)");
      }
    }
  }
  return source;
}

SourceCurves folder_curves(const CurveChoice& choice, const fs::path& path,
                           const std::string& other) {
  return is_sweep_folder(path) ? sweep_curves(choice, path, other)
                               : run_curves(choice, path, other);
}

SourceCurves table_curves(const CurveChoice& choice, const std::string& path) {
  const std::vector<std::string> all = column_names(path);
  std::vector<std::string> names{choice.x.empty() ? all.front() : choice.x};
  for (const std::string& column : choice.series.empty() ? all : choice.series) {
    if (!choice.series.empty() || column != names.front()) names.push_back(column);
  }
  const auto columns = read_columns(path, names);
  SourceCurves source{fs::path(path).stem().string(), path};
  source.x_label = names.front();
  if (names.size() == 2) source.y_label = names.back();
  for (std::size_t c = 1; c < names.size(); ++c) {
    FigureCurve& curve = source.curves.emplace_back();
    curve.label = names[c];
    for (std::size_t i = 0; i < columns[0].size(); ++i) {
      curve.points.push_back({columns[0][i], columns[c][i]});
    }
  }
  return source;
}

bool is_job_id(const std::string& source) {
  return !source.empty() && source.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

SourceCurves read_source(const CurveChoice& choice, const std::string& source,
                         const TemporaryFolder& scratch) {
  if (is_job_id(source)) {
    const auto id = parse_integer(source);
    if (!id || *id > UINT32_MAX) throw ConfigError(source + " is no job's id");
    const fs::path folder = scratch.path() / source;
    if (!fs::exists(folder)) {
      fetch_curves(Api(find_daemon(choice.endpoint)), static_cast<std::uint32_t>(*id), folder);
    }
    return folder_curves(choice, folder, "job " + source);
  }
  if (fs::is_directory(source)) {
    const std::string name = fs::path(source).filename().string();
    return folder_curves(choice, source, name.empty() ? source : name);
  }
  if (fs::is_regular_file(source)) return table_curves(choice, source);
  throw ConfigError(source + ": no job's id (only digits), no folder of a run and no CSV file");
}

}  // namespace pipewright::cli
