#include "client/cli/figure/figure.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <set>

#include "client/cli/view/range.hpp"
#include "client/cli/view/text.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace pipewright::cli {

namespace {

/// Okabe and Ito's colours (without their yellow, which is too faint on white): they can be told
/// apart by people with any of the common colour deficiencies.
constexpr std::array colors{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                            "#e69f00", "#56b4e9", "#000000"};
constexpr std::array dashes{"solid",       "(9,3)",       "(2.5,2.5)",
                            "(9,3,2.5,3)", "(4,2,1.5,2)", "(9,3,2,2,2,3)"};
constexpr std::array markers{7, 5, 9, 13, 11, 6, 4, 8};

/// More curves than that are steps of one scale (cividis), in the order in which they are given.
constexpr std::size_t distinct_colors_max = 12;
constexpr std::array<std::array<double, 3>, 5> scale{
    {{0, 34, 78}, {66, 78, 108}, {124, 123, 120}, {182, 170, 105}, {234, 209, 72}}};

/// Curves of so few points show each of them.
constexpr std::size_t marked_points_max = 40;
constexpr std::size_t marked_ticks_max = 12;
/// More labels than that stand beside the picture.
constexpr std::size_t inside_labels_max = 6;

std::string color_of(std::size_t index, std::size_t count) {
  if (count <= distinct_colors_max) return colors[index % colors.size()];
  const double at =
      static_cast<double>(index) / static_cast<double>(count - 1) * (scale.size() - 1);
  const auto low = std::min(static_cast<std::size_t>(at), scale.size() - 2);
  const double part = at - static_cast<double>(low);
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "#";
  for (std::size_t c = 0; c < 3; ++c) {
    const double mixed = scale[low][c] + part * (scale[low + 1][c] - scale[low][c]);
    const auto byte = static_cast<std::size_t>(std::lround(mixed));
    text += digits[byte / 16];
    text += digits[byte % 16];
  }
  return text;
}

/// One axis as it will be drawn.
struct Axis {
  bool log = false;
  Range range;

  bool shows(double value) const { return std::isfinite(value) && (!log || value > 0); }
  void add(double value) {
    if (shows(value)) range.add(value);
  }
  /// 0 at the low end, 1 at the high one.
  double place(double value) const {
    if (range.high <= range.low) return 0.5;
    if (!log) return (value - range.low) / (range.high - range.low);
    return std::log(value / range.low) / std::log(range.high / range.low);
  }
  double decades() const { return log && !range.empty() ? std::log10(range.high / range.low) : 0; }
};

/// Few values of x on a logarithmic axis (2, 4, 8, ...) are what the axis is marked with.
std::string ticks_setting(const Figure& figure, const Axis& x) {
  std::set<double> values;
  for (const FigureCurve& curve : figure.curves) {
    if (!x.log || curve.points.size() > marked_ticks_max) return "";
    for (const PlotPoint& point : curve.points) {
      if (x.shows(point.x)) values.insert(point.x);
    }
  }
  if (values.size() > marked_ticks_max) return "";
  std::vector<std::string> texts;
  for (const double value : values) texts.push_back(format_short(value, 6));
  return "set xtics (" + join(texts, ", ") + ")\nunset mxtics\n";
}

/// The corner of the picture that the fewest points lie in, as gnuplot names it.
std::string emptiest_corner(const Figure& figure, const Axis& x, const Axis& y) {
  struct Corner {
    const char* name;
    bool right, top;
    double points = 0;
  };
  std::array<Corner, 4> corners{{{"top right", true, true},
                                 {"bottom left", false, false},
                                 {"bottom right", true, false},
                                 {"top left", false, true}}};
  for (const FigureCurve& curve : figure.curves) {
    for (const PlotPoint& point : curve.points) {
      if (!x.shows(point.x) || !y.shows(point.y)) continue;
      const double across = x.place(point.x), up = y.place(point.y);
      for (Corner& corner : corners) {
        const bool inside =
            (corner.right ? across > 0.5 : across < 0.5) && (corner.top ? up > 0.65 : up < 0.35);
        if (inside) corner.points += 1 / static_cast<double>(curve.points.size());
      }
    }
  }
  return std::min_element(corners.begin(), corners.end(),
                          [](const Corner& a, const Corner& b) { return a.points < b.points; })
      ->name;
}

void append_data(std::string& script, const FigureCurve& curve, const Axis& x, const Axis& y) {
  bool broken = true;  // no two blank lines in turn: they would begin another data set
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const PlotPoint& point = curve.points[i];
    if (!x.shows(point.x) || !y.shows(point.y)) {
      if (!broken) script += '\n';
      broken = true;
      continue;
    }
    script += format_short(point.x, 9) + ' ' + format_short(point.y, 6);
    if (!curve.band.empty()) {
      // What of a band lies below a logarithmic axis is cut off at its lower end.
      const double low = y.shows(curve.band[i].low) ? curve.band[i].low : y.range.low;
      const double high = y.shows(curve.band[i].high) ? curve.band[i].high : point.y;
      script += ' ' + format_short(low, 6) + ' ' + format_short(high, 6);
    }
    script += '\n';
    broken = false;
  }
}

/// The range a little wider than the data on the sides of `pad_low` and `pad_high`.
std::string range_setting(const std::string& name, const Axis& axis, double pad_low,
                          double pad_high) {
  double low = axis.range.low, high = axis.range.high;
  if (axis.log) {
    const double factor = low < high ? high / low : 10;
    low /= std::pow(factor, pad_low);
    high *= std::pow(factor, pad_high);
  } else {
    const double width = low < high ? high - low : std::max(std::abs(high), 1.0);
    // An axis that nearly begins at 0 does.
    low = low >= 0 && low < width / 4 ? 0 : low - width * pad_low;
    high += width * pad_high;
  }
  return "set " + name + "range [" + format_short(low, 9) + ":" + format_short(high, 9) + "]\n";
}

std::string axis_settings(const char* name, const Axis& axis) {
  const std::string axis_name(name);
  std::string text;
  if (axis.log) text += "set logscale " + axis_name + "\n";
  if (axis.decades() > 8) text += "unset m" + axis_name + "tics\n";
  if (axis.decades() > 3) {
    text += "set format " + axis_name + " '10^{%T}'\n";
  } else {
    text += "set format " + axis_name + " '%g'\n";
  }
  const bool is_x = axis_name == "x";
  return text + range_setting(axis_name, axis, is_x ? 0 : 0.04, is_x ? 0.02 : 0.04);
}

std::string head(const Figure& figure, FigureFormat format) {
  const std::string size = std::to_string(figure.width_px) + "," + std::to_string(figure.height_px);
  std::string text = "set encoding utf8\n";
  if (format == FigureFormat::svg) {
    text += "set terminal svg enhanced size " + size +
            " background 'white' font 'Helvetica,Arial,sans-serif,14' linewidth 1\n";
  } else {
    text += "set terminal pngcairo enhanced size " + size + " background 'white' font 'sans,11'\n";
  }
  text +=
      "set border 3 linecolor '#404040' linewidth 1\n"
      "set tics nomirror out scale 0.7 textcolor '#202020'\n"
      "set grid back linecolor '#d8d8d8' linetype 1 linewidth 0.6\n";
  if (!figure.title.empty()) {
    text += "set title " + gnuplot_quoted(figure.title) + " noenhanced\n";
  }
  text += "set xlabel " + gnuplot_quoted(figure.x_label) + " noenhanced\n" + "set ylabel " +
          gnuplot_quoted(figure.y_label) + " noenhanced\n";
  return text;
}

std::size_t labels_of(const Figure& figure) {
  return static_cast<std::size_t>(
      std::count_if(figure.curves.begin(), figure.curves.end(),
                    [](const FigureCurve& curve) { return !curve.label.empty(); }));
}

/// Of more curves than a legend has room for, whose colours then go from one end of a scale to the
/// other, it names a part, evenly spaced.
std::size_t labels_step(const Figure& figure) {
  static constexpr int label_height_px = 24;
  const auto room = static_cast<std::size_t>(std::max(1, figure.height_px / label_height_px));
  return std::max<std::size_t>(1, (labels_of(figure) + room - 1) / room);
}

/// The `plot` command: bands first, so that every line is on top of them.
std::string plot_command(const Figure& figure) {
  const std::size_t step = labels_step(figure);
  std::size_t labelled = 0;
  std::size_t count = 0;
  for (const FigureCurve& curve : figure.curves) count = std::max(count, curve.color + 1);
  const bool distinct = count <= distinct_colors_max;
  std::vector<std::string> bands, lines;
  for (std::size_t i = 0; i < figure.curves.size(); ++i) {
    const FigureCurve& curve = figure.curves[i];
    if (curve.points.empty()) continue;
    const std::string data = "$curve" + std::to_string(i);
    const std::string color = " linecolor '" + color_of(curve.color, count) + "'";
    if (!curve.band.empty()) {
      bands.push_back(data + " using 1:3:4 with filledcurves" + color +
                      " fillstyle transparent solid 0.2 noborder notitle");
    }
    const bool marked = curve.points.size() <= marked_points_max;
    std::string line = data + " using 1:2 with " + (marked ? "linespoints" : "lines") + color +
                       " linewidth 2 dashtype " +
                       (distinct ? dashes[curve.dash % dashes.size()] : dashes[0]);
    if (marked) {
      line += " pointsize 0.7 pointtype " + std::to_string(markers[i % markers.size()]);
    }
    const bool is_named = !curve.label.empty() && labelled++ % step == 0;
    line += is_named ? " title " + gnuplot_quoted(curve.label) : " notitle";
    lines.push_back(line);
  }
  bands.insert(bands.end(), lines.begin(), lines.end());
  return "plot " + join(bands, ", \\\n     ") + "\n";
}

}  // namespace

FigureFormat figure_format_of(const std::string& path) {
  if (path.ends_with(".svg")) return FigureFormat::svg;
  if (path.ends_with(".png")) return FigureFormat::png;
  throw ConfigError("--out " + path + ": the name must end in .svg or .png");
}

bool suits_log_y(const std::vector<FigureCurve>& curves) {
  Range range;
  for (const FigureCurve& curve : curves) {
    for (const PlotPoint& point : curve.points) {
      if (std::isfinite(point.y)) range.add(point.y);
    }
  }
  return !range.empty() && range.low > 0 && range.high / range.low > 100;
}

void smooth(FigureCurve& curve, std::size_t count) {
  std::vector<PlotPoint> points;
  std::vector<Bounds> band;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    if (!std::isfinite(curve.points[i].y)) begin = i + 1;
    begin = std::max(begin, i + 1 >= count ? i + 1 - count : 0);
    const auto width = static_cast<double>(i + 1 - std::min(begin, i));
    PlotPoint mean{curve.points[i].x, begin > i ? curve.points[i].y : 0};
    Bounds bounds;
    for (std::size_t j = begin; j <= i; ++j) {
      mean.y += curve.points[j].y / width;
      if (curve.band.empty()) continue;
      bounds.low += curve.band[j].low / width;
      bounds.high += curve.band[j].high / width;
    }
    points.push_back(mean);
    if (!curve.band.empty()) band.push_back(bounds);
  }
  curve.points = std::move(points);
  curve.band = std::move(band);
}

namespace {

/// Of the points begin..end - 1 the first, the lowest, the highest and the last, in their order,
/// and one that interrupts the curve if there is any.
std::vector<std::size_t> extremes(const std::vector<PlotPoint>& points, std::size_t begin,
                                  std::size_t end) {
  std::vector<std::size_t> kept{begin, end - 1};
  std::size_t low = begin, high = begin;
  for (std::size_t i = begin; i < end; ++i) {
    if (!std::isfinite(points[i].y)) {
      kept.push_back(i);
      continue;
    }
    if (!(points[i].y >= points[low].y)) low = i;
    if (!(points[i].y <= points[high].y)) high = i;
  }
  kept.push_back(low);
  kept.push_back(high);
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  return kept;
}

}  // namespace

void thin(FigureCurve& curve, std::size_t points_max, bool log_x) {
  if (curve.points.size() <= points_max) return;
  Axis x{log_x, {}};
  for (const PlotPoint& point : curve.points) x.add(point.x);
  const std::size_t parts =
      std::max<std::size_t>(1, curve.band.empty() ? points_max / 4 : points_max);
  const auto part_of = [&](std::size_t i) -> std::size_t {
    if (!x.shows(curve.points[i].x)) return 0;
    return std::min(parts - 1, static_cast<std::size_t>(x.place(curve.points[i].x) *
                                                        static_cast<double>(parts)));
  };
  FigureCurve thinned{curve.label, curve.color, curve.dash, {}, {}};
  for (std::size_t begin = 0; begin < curve.points.size();) {
    std::size_t end = begin + 1;
    while (end < curve.points.size() && part_of(end) == part_of(begin)) ++end;
    if (curve.band.empty()) {
      for (const std::size_t i : extremes(curve.points, begin, end)) {
        thinned.points.push_back(curve.points[i]);
      }
    } else {
      thinned.points.push_back(curve.points[begin]);
      thinned.band.push_back(curve.band[begin]);
    }
    begin = end;
  }
  curve = std::move(thinned);
}

std::string gnuplot_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : printable(text)) {
    quoted += c;
    if (c == '\'') quoted += c;
  }
  return quoted + "'";
}

std::string gnuplot_script(const Figure& figure, FigureFormat format) {
  Axis x{figure.log_x, {}}, y{figure.log_y, {}};
  for (const FigureCurve& curve : figure.curves) {
    for (const PlotPoint& point : curve.points) {
      if (!x.shows(point.x) || !y.shows(point.y)) continue;
      x.add(point.x);
      y.add(point.y);
    }
    for (const Bounds& bounds : curve.band) {
      y.add(bounds.low);
      y.add(bounds.high);
    }
  }
  if (x.range.empty()) {
    throw ConfigError("there is nothing to draw: no curve has a finite point" +
                      std::string(x.log || y.log ? " above 0, and an axis is logarithmic" : ""));
  }
  std::string script = head(figure, format) + axis_settings("x", x) + axis_settings("y", y) +
                       ticks_setting(figure, x);
  if (labels_of(figure) > inside_labels_max) {
    script += "set key outside right center noenhanced Left reverse samplen 2.5 font ',11'\n";
  } else {
    script += "set key inside " + emptiest_corner(figure, x, y) +
              " opaque noenhanced Left reverse samplen 3 width 1\n";
  }
  for (std::size_t i = 0; i < figure.curves.size(); ++i) {
    if (figure.curves[i].points.empty()) continue;
    script += "$curve" + std::to_string(i) + " << END_OF_CURVE\n";
    append_data(script, figure.curves[i], x, y);
    script += "END_OF_CURVE\n";
  }
  return script + plot_command(figure);
}

}  // namespace pipewright::cli
