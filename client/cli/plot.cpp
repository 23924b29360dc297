// plot: the curves of jobs and runs as a figure.
#include <algorithm>
#include <array>
#include <iostream>
#include <map>

#include "client/cli/command.hpp"
#include "client/cli/figure/figure.hpp"
#include "client/cli/figure/gnuplot.hpp"
#include "client/cli/figure/source.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace pipewright::cli {

namespace {

constexpr std::size_t curve_points_max = 2000;

struct Options {
  CurveChoice choice;
  std::vector<std::string> sources, labels;
  std::string out, title, x_label, y_label, size;
  bool log_x = false;
  bool log_y = false;
  bool linear_y = false;
  std::optional<double> x_max;
  std::size_t smooth = 1;
};

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

/// What all sources have along the y axis; nothing if they differ.
std::string y_label_of(const std::vector<SourceCurves>& sources) {
  for (const SourceCurves& source : sources) {
    if (source.y_label != sources.front().y_label) return "";
  }
  return sources.front().y_label;
}

void cut_off(FigureCurve& curve, double x_max) {
  std::vector<PlotPoint> points;
  std::vector<Bounds> band;
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    if (curve.points[i].x > x_max) continue;
    points.push_back(curve.points[i]);
    if (!curve.band.empty()) band.push_back(curve.band[i]);
  }
  curve.points = std::move(points);
  curve.band = std::move(band);
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
    sources.push_back(read_source(options.choice, source, scratch));
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
  if (!options.x_label.empty()) figure.x_label = options.x_label;
  if (!options.y_label.empty()) figure.y_label = options.y_label;
  figure.log_x = options.log_x;
  if (figure.curves.size() == 1 && options.labels.empty()) {
    if (figure.title.empty()) figure.title = figure.curves.front().label;
    figure.curves.front().label.clear();
  }
  for (FigureCurve& curve : figure.curves) {
    if (options.smooth > 1) smooth(curve, options.smooth);
    if (options.x_max) cut_off(curve, *options.x_max);
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
      ->add_option("--x", options->choice.x,
                   "Along the x axis: tick (unless said otherwise), updates or microbatches; of "
                   "a CSV file a column, by default the first")
      ->type_name("AXIS");
  command
      ->add_option("--series", options->choice.series,
                   "What is drawn, repeatable: objective (unless said otherwise), loss of the last "
                   "stage, validation, gap, or a column of theory.csv such as gradient_norm_sq, "
                   "gradient_norm_sq_mean, bound; of a CSV file its columns, by default all")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command->add_flag("--gap", options->choice.gap, "Draw f - f* for the objective f");
  command->add_option("--optimum", options->choice.optimum,
                      "f*, for runs that do not know it (observe.theory: true finds it)");
  command->add_flag("--best", options->choice.best,
                    "Of a job of many runs only the best one, by the last objective");
  command->add_flag("--band", options->choice.band,
                    "Of a job with repeats the mean of each point's runs and its 95 % confidence "
                    "interval");
  command->add_option("--x-max", options->x_max, "Draw up to this x, in the units of the axis");
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
  command->add_option("--x-label", options->x_label, "Below the x axis");
  command->add_option("--y-label", options->y_label, "Beside the y axis");
  command
      ->add_option("--label", options->labels,
                   "For the legend, one per curve in their order; by default the names of the jobs")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command
      ->add_option("--size", options->size,
                   "WIDTHxHEIGHT in pixels; 720x440 for SVG and 960x600 for PNG")
      ->type_name("SIZE");
  add_endpoint_flags(command, options->choice.endpoint);
  program.on(command, [options] { return draw(*options); });
}

}  // namespace pipewright::cli
