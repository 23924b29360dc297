// plot: the curves of jobs and runs as a figure.
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <map>

#include "client/cli/command.hpp"
#include "client/cli/figure/fetch.hpp"
#include "client/cli/figure/figure.hpp"
#include "client/cli/figure/gnuplot.hpp"
#include "client/cli/figure/number_table.hpp"
#include "client/cli/figure/run_folder.hpp"
#include "client/cli/net/api.hpp"
#include "client/cli/net/endpoint.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace pipewright::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t curve_points_max = 2000;

struct Options {
  EndpointFlags endpoint;
  std::vector<std::string> sources;
  std::string out, x, title, size;
  std::vector<std::string> series, labels;
  bool gap = false;
  bool log_x = false;
  bool log_y = false;
  bool linear_y = false;
  std::optional<double> optimum;
  std::size_t smooth = 1;
};

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "pipewright-plot-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw Error("cannot make a temporary folder");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// Curves of one source, labelled by their series; `name` tells sources from each other.
struct SourceCurves {
  std::string name, other_name;
  std::vector<FigureCurve> curves;
  std::string x_label;
  bool in_durations = false;
};

/// The series of a run that were asked for.
std::vector<std::string> run_series(const Options& options) {
  std::vector<std::string> series = options.series;
  if (series.empty()) series.emplace_back("objective");
  for (std::string& one : series) {
    if (options.gap && one == "objective") one = "gap";
  }
  return series;
}

SourceCurves run_curves(const Options& options, const fs::path& path, const std::string& other) {
  const std::string x = options.x.empty() ? "tick" : options.x;
  static const std::vector<std::string> axes{"tick", "updates", "microbatches"};
  if (std::find(axes.begin(), axes.end(), x) == axes.end()) {
    throw ConfigError("--x " + x + suggest(x, axes));
  }
  const RunFolder folder = open_run_folder(path);
  SourceCurves source{folder.name, other, {}, label_of_x(x), folder.in_durations && x == "tick"};
  for (const std::string& series : run_series(options)) {
    source.curves.push_back(read_curve(folder, x, series, options.optimum));
    source.curves.back().label = series;
  }
  return source;
}

SourceCurves table_curves(const Options& options, const std::string& path) {
  const std::vector<std::string> all = column_names(path);
  std::vector<std::string> names{options.x.empty() ? all.front() : options.x};
  for (const std::string& column : options.series.empty() ? all : options.series) {
    if (!options.series.empty() || column != names.front()) names.push_back(column);
  }
  const auto columns = read_columns(path, names);
  SourceCurves source{fs::path(path).stem().string(), path, {}, names.front(), false};
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

SourceCurves read_source(const Options& options, const std::string& source,
                         const TemporaryFolder& scratch) {
  if (is_job_id(source)) {
    const auto id = parse_integer(source);
    if (!id || *id > UINT32_MAX) throw ConfigError(source + " is no job's id");
    const fs::path folder = scratch.path() / source;
    if (!fs::exists(folder)) {
      fetch_curves(Api(find_daemon(options.endpoint)), static_cast<std::uint32_t>(*id), folder);
    }
    return run_curves(options, folder, "job " + source);
  }
  if (fs::is_directory(source)) {
    const std::string name = fs::path(source).filename().string();
    return run_curves(options, source, name.empty() ? source : name);
  }
  if (fs::is_regular_file(source)) return table_curves(options, source);
  throw ConfigError(source +
                    ": no job's id, no folder of a run and no CSV file (a folder whose name is a "
                    "number is given as ./" +
                    source + ")");
}

/// Labels by what tells curves from each other: the source, the series, or both.
void label_curves(std::vector<SourceCurves>& sources, const Options& options) {
  std::map<std::string, int> times;
  for (const SourceCurves& source : sources) ++times[source.name];
  std::size_t index = 0;
  for (SourceCurves& source : sources) {
    std::string name = source.name;
    if (name.empty()) {
      name = source.other_name;
    } else if (times[name] > 1) {
      name += " (" + source.other_name + ")";
    }
    for (FigureCurve& curve : source.curves) {
      if (source.curves.size() == 1) {
        curve.label = name;
      } else if (sources.size() > 1) {
        curve.label = name + ": " + curve.label;
      }
      if (index < options.labels.size()) curve.label = options.labels[index];
      ++index;
    }
  }
  if (options.labels.size() > index) {
    throw ConfigError(std::to_string(options.labels.size()) + " labels for " +
                      std::to_string(index) + " curves");
  }
}

/// Several series of several sources: the colour tells the source and the dashes the series.
void style_curves(std::vector<SourceCurves>& sources) {
  std::size_t index = 0;
  for (std::size_t s = 0; s < sources.size(); ++s) {
    const bool both = sources.size() > 1 && sources[s].curves.size() > 1;
    for (std::size_t c = 0; c < sources[s].curves.size(); ++c, ++index) {
      sources[s].curves[c].color = both ? s : index;
      sources[s].curves[c].dash = both ? c : index;
    }
  }
}

/// Nanoseconds become the unit in which the axis has readable numbers.
std::string scale_durations(std::vector<SourceCurves>& sources) {
  double last = 0;
  for (const SourceCurves& source : sources) {
    for (const FigureCurve& curve : source.curves) {
      for (const PlotPoint& point : curve.points) last = std::max(last, point.x);
    }
  }
  static constexpr std::array<std::pair<double, const char*>, 4> units{
      {{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}, {1, "ns"}}};
  const auto* unit = std::find_if(units.begin(), units.end() - 1,
                                  [&](const auto& one) { return last >= 10 * one.first; });
  for (SourceCurves& source : sources) {
    for (FigureCurve& curve : source.curves) {
      for (PlotPoint& point : curve.points) point.x /= unit->first;
    }
  }
  return "time (" + std::string(unit->second) + ")";
}

std::string y_label_of(const std::vector<SourceCurves>& sources) {
  // One series for all curves, and it is not named by the labels then.
  const SourceCurves& first = sources.front();
  if (first.curves.size() > 1) return "";
  for (const SourceCurves& source : sources) {
    if (source.curves.size() > 1 || source.curves.front().label != first.curves.front().label) {
      return "";
    }
  }
  return label_of_series(first.curves.front().label);
}

void set_size(Figure& figure, const std::string& size) {
  const auto parts = split(size, 'x');
  const auto width = parse_integer(parts.front());
  const auto height = parts.size() == 2 ? parse_integer(parts[1]) : std::nullopt;
  const auto fits = [](const auto& side) { return side && *side >= 100 && *side <= 10'000; };
  if (!fits(width) || !fits(height)) {
    throw ConfigError("--size " + size +
                      ": expected WIDTHxHEIGHT in pixels, each 100 to 10000, for example 720x440");
  }
  figure.width_px = static_cast<int>(*width);
  figure.height_px = static_cast<int>(*height);
}

Figure make_figure(const Options& options) {
  const TemporaryFolder scratch;
  std::vector<SourceCurves> sources;
  for (const std::string& source : options.sources) {
    sources.push_back(read_source(options, source, scratch));
  }
  Figure figure;
  figure.title = options.title;
  figure.x_label = sources.front().x_label;
  figure.y_label = y_label_of(sources);
  for (const SourceCurves& source : sources) {
    if (source.in_durations != sources.front().in_durations) {
      throw ConfigError(
          "some of these runs count time in ticks and others in durations: draw them by updates or "
          "microbatches (--x updates)");
    }
  }
  if (sources.front().in_durations) figure.x_label = scale_durations(sources);
  label_curves(sources, options);
  style_curves(sources);
  for (SourceCurves& source : sources) {
    std::move(source.curves.begin(), source.curves.end(), std::back_inserter(figure.curves));
  }
  figure.log_x = options.log_x;
  if (figure.curves.size() == 1 && options.labels.empty()) {
    if (figure.title.empty()) figure.title = figure.curves.front().label;
    figure.curves.front().label.clear();
  }
  for (FigureCurve& curve : figure.curves) {
    if (options.smooth > 1) smooth(curve, options.smooth);
  }
  figure.log_y = options.log_y || (!options.linear_y && suits_log_y(figure.curves));
  for (FigureCurve& curve : figure.curves) thin(curve, curve_points_max, figure.log_x);
  return figure;
}

int draw(const Options& options) {
  const FigureFormat format = figure_format_of(options.out);
  Figure figure = make_figure(options);
  if (format == FigureFormat::png) {
    figure.width_px = 960;
    figure.height_px = 600;
  }
  if (!options.size.empty()) set_size(figure, options.size);
  run_gnuplot(gnuplot_script(figure, format), options.out);
  std::cout << options.out << '\n';
  return exit_ok;
}

}  // namespace

void add_plot(Program& program) {
  CLI::App* command = program.add_command(
      "plot",
      "Draw the curves of jobs, of runs in folders, or of the columns of a CSV file, one over the "
      "other, as SVG or PNG (with gnuplot: package gnuplot-nox)",
      "pipewright plot 7 8 --out curves.svg --label PipeDream --label LocalSGD\n"
      "  pipewright plot results --series gradient_norm_sq_mean --series bound --out theory.png\n"
      "  pipewright plot table.csv --x stages --series mean --series max --out delays.svg");
  auto options = std::make_shared<Options>();
  command
      ->add_option(
          "SOURCE", options->sources,
          "A job's id (only digits), a folder that `run` or `export` has written, or a CSV "
          "file with a line of column names")
      ->required();
  command->add_option("--out", options->out, "The picture: a name in .svg or .png")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("--x", options->x,
                   "Along the x axis: tick (unless said otherwise), updates or microbatches; of "
                   "a CSV file a column, by default the first")
      ->type_name("AXIS");
  command
      ->add_option("--series", options->series,
                   "What is drawn, repeatable: objective (unless said otherwise), loss of the last "
                   "stage, gap, or a column of theory.csv such as gradient_norm_sq, "
                   "gradient_norm_sq_mean, bound; of a CSV file its columns, by default all")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command->add_flag("--gap", options->gap, "Draw f - f* for the objective f");
  command->add_option("--optimum", options->optimum,
                      "f*, for runs that do not know it (observe.theory: true finds it)");
  command->add_flag("--log-x", options->log_x, "Logarithmic x axis");
  CLI::Option* log_y =
      command->add_flag("--log-y", options->log_y,
                        "Logarithmic y axis; without being asked for when all values are positive "
                        "and span more than two decades");
  command->add_flag("--linear-y", options->linear_y, "Linear y axis in any case")->excludes(log_y);
  command->add_option("--smooth", options->smooth, "Draw the mean of the last N points")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  command->add_option("--title", options->title, "Above the picture");
  command
      ->add_option("--label", options->labels,
                   "For the legend, one per curve in their order; by default the names of the jobs")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command
      ->add_option("--size", options->size,
                   "WIDTHxHEIGHT in pixels; 720x440 for SVG and 960x600 for PNG")
      ->type_name("SIZE");
  add_endpoint_flags(command, options->endpoint);
  program.on(command, [options] { return draw(*options); });
}

}  // namespace pipewright::cli
