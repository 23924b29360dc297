#include "client/cli/view/plot.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "client/cli/view/range.hpp"
#include "client/cli/view/text.hpp"

namespace pipewright::cli {

namespace {

struct Axes {
  Range x, y;  // y after the logarithm when `log`
  bool log = false;

  bool shows(const PlotPoint& p) const {
    return std::isfinite(p.x) && std::isfinite(p.y) && (!log || p.y > 0);
  }
  double height(double y_value) const { return log ? std::log10(y_value) : y_value; }
  double value(double height) const { return log ? std::pow(10, height) : height; }
};

Axes make_axes(std::span<const PlotCurve> curves, bool log_wanted) {
  Axes axes;
  const auto any = [&](auto&& condition) {
    return std::any_of(curves.begin(), curves.end(), [&](const PlotCurve& curve) {
      return std::any_of(curve.points.begin(), curve.points.end(), condition);
    });
  };
  axes.log = log_wanted && any([](const PlotPoint& p) { return std::isfinite(p.y) && p.y > 0; });
  for (const PlotCurve& curve : curves) {
    for (const PlotPoint& p : curve.points) {
      if (!axes.shows(p)) continue;
      axes.x.add(p.x);
      axes.y.add(axes.height(p.y));
    }
  }
  if (axes.x.empty()) axes.x = {0, 1}, axes.y = {0, 1};
  if (axes.x.low == axes.x.high) axes.x.high = axes.x.low + 1;
  if (axes.y.low == axes.y.high) {  // a constant curve runs through the middle
    const double margin = axes.log ? 0.1 : std::max(std::abs(axes.y.low) * 0.1, 1e-300);
    const double spread = axes.y.low == 0 && !axes.log ? 1 : margin;
    axes.y = {axes.y.low - spread, axes.y.high + spread};
  }
  return axes;
}

/// Cells of dots and the curve that drew into each last.
class Canvas {
 public:
  Canvas(int columns, int rows)
      : columns_(columns),
        rows_(rows),
        bits_(static_cast<std::size_t>(columns * rows)),
        owner_(bits_.size(), 0) {}

  int dots_wide() const { return columns_ * 2; }
  int dots_high() const { return rows_ * 4; }

  void dot(int x, int y, std::size_t curve) {
    constexpr std::array<std::array<std::uint8_t, 2>, 4> bit{
        {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}};
    const auto cell = static_cast<std::size_t>(y / 4 * columns_ + x / 2);
    bits_[cell] |= bit[static_cast<std::size_t>(y % 4)][static_cast<std::size_t>(x % 2)];
    owner_[cell] = curve;
  }

  void line(int x0, int y0, int x1, int y1, std::size_t curve) {
    const int steps = std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1});
    for (int i = 0; i <= steps; ++i) {
      const double part = static_cast<double>(i) / steps;
      dot(x0 + static_cast<int>(std::lround(part * (x1 - x0))),
          y0 + static_cast<int>(std::lround(part * (y1 - y0))), curve);
    }
  }

  std::string row(int r, bool colors) const {
    std::string out;
    std::string color;
    for (int c = 0; c < columns_; ++c) {
      const auto cell = static_cast<std::size_t>(r * columns_ + c);
      if (bits_[cell] == 0) {
        out += ' ';
        continue;
      }
      if (colors && color != curve_color(owner_[cell])) out += color = curve_color(owner_[cell]);
      out += '\xE2';  // U+2800 + bits in UTF-8
      out += static_cast<char>(0xA0 + (bits_[cell] >> 6U));
      out += static_cast<char>(0x80 + (bits_[cell] & 0x3FU));
    }
    if (!color.empty()) return out + "\x1b[0m";
    return out.erase(out.find_last_not_of(' ') + 1);
  }

 private:
  int columns_, rows_;
  std::vector<std::uint8_t> bits_;
  std::vector<std::size_t> owner_;
};

int place(double value, const Range& range, int count) {
  const double part = (value - range.low) / (range.high - range.low);
  return std::clamp(static_cast<int>(std::lround(part * (count - 1))), 0, count - 1);
}

void draw(Canvas& canvas, const Axes& axes, std::span<const PlotCurve> curves) {
  for (std::size_t index = 0; index < curves.size(); ++index) {
    bool joined = false;
    int last_x = 0, last_y = 0;
    for (const PlotPoint& p : curves[index].points) {
      if (!axes.shows(p)) {
        joined = false;
        continue;
      }
      const int x = place(p.x, axes.x, canvas.dots_wide());
      const int y = canvas.dots_high() - 1 - place(axes.height(p.y), axes.y, canvas.dots_high());
      canvas.line(joined ? last_x : x, joined ? last_y : y, x, y, index);
      joined = true;
      last_x = x, last_y = y;
    }
  }
}

std::vector<double> linear_ticks(double low, double high, int count_max) {
  double step = std::pow(10, std::floor(std::log10((high - low) / count_max)));
  constexpr std::array<double, 3> factors{2, 2.5, 2};  // 1, 2, 5, 10
  const auto count = [&] { return std::floor(high / step) - std::ceil(low / step) + 1; };
  for (std::size_t i = 0; count() > count_max; ++i) step *= factors[i % 3];
  std::vector<double> ticks;
  for (double k = std::ceil(low / step); k <= std::floor(high / step); ++k)
    ticks.push_back(k * step);
  return ticks;
}

std::vector<double> decade_ticks(double low, double high, std::span<const double> mantissas) {
  std::vector<double> ticks;
  for (double e = std::floor(std::log10(low)); e <= std::ceil(std::log10(high)); ++e) {
    for (const double m : mantissas) {
      const double value = m * std::pow(10, e);
      if (value >= low * (1 - 1e-12) && value <= high * (1 + 1e-12)) ticks.push_back(value);
    }
  }
  return ticks;
}

/// Labels of the rows of the picture, "" where there is none.
std::vector<std::string> row_labels(const Axes& axes, int rows) {
  const double low = axes.value(axes.y.low), high = axes.value(axes.y.high);
  const std::vector<double> ticks = axis_ticks(low, high, axes.log, std::max(2, (rows + 1) / 2));
  std::vector<std::string> labels(static_cast<std::size_t>(rows));
  const double step = ticks.size() > 1 ? std::abs(ticks[1] - ticks[0]) : high - low;
  const int digits = static_cast<int>(std::clamp(
      std::ceil(std::log10(std::max(std::abs(low), std::abs(high)) / step)) + 1, 4., 15.));
  for (const double tick : ticks) {
    const int dot = rows * 4 - 1 - place(axes.height(tick), axes.y, rows * 4);
    std::string& label = labels[static_cast<std::size_t>(dot / 4)];
    if (label.empty()) label = std::abs(tick) < step * 1e-9 ? "0" : format_short(tick, digits);
  }
  return labels;
}

/// The two lines below the picture.
std::array<std::string, 2> x_axis(const Axes& axes, int columns, const std::string& x_label) {
  std::vector<std::string> rule(static_cast<std::size_t>(columns), "─");
  std::string labels(static_cast<std::size_t>(columns), ' ');
  const int label_columns = display_width(x_label);
  const bool labelled = label_columns > 0 && label_columns + 8 < columns;
  const int free_columns = labelled ? columns - label_columns - 1 : columns;
  int next_free = 0;
  for (const double tick : axis_ticks(axes.x.low, axes.x.high, false, std::max(2, columns / 10))) {
    const std::string label = format_si(tick);
    const int width = static_cast<int>(label.size());
    const int at = place(tick, axes.x, columns);
    const int begin = std::max(at - width / 2, 0);
    rule[static_cast<std::size_t>(at)] = "┬";
    if (begin < next_free || begin + width > free_columns) continue;
    labels.replace(static_cast<std::size_t>(begin), label.size(), label);
    next_free = begin + width + 1;
  }
  labels.erase(labels.find_last_not_of(' ') + 1);
  if (labelled) labels = pad_right(labels, free_columns + 1) + x_label;
  std::string line = "└";
  for (const std::string& piece : rule) line += piece;
  return {line, labels};
}

}  // namespace

std::string curve_color(std::size_t index) {
  constexpr std::array<int, 6> colors{36, 33, 35, 32, 34, 31};
  return "\x1b[" + std::to_string(colors[index % colors.size()]) + "m";
}

std::vector<double> axis_ticks(double low, double high, bool log, int count_max) {
  if (!log) return linear_ticks(low, high, count_max);
  constexpr std::array<double, 9> mantissas{1, 2, 3, 4, 5, 6, 7, 8, 9};
  constexpr std::array<double, 3> coarse{1, 2, 5};
  const auto limit = static_cast<std::size_t>(count_max);
  std::vector<double> ticks = decade_ticks(low, high, std::span(mantissas).first(1));
  if (ticks.size() >= 2) {
    const std::size_t stride = (ticks.size() + limit - 1) / limit;
    std::vector<double> kept;
    for (std::size_t i = 0; i < ticks.size(); i += stride) kept.push_back(ticks[i]);
    if (kept.size() >= 3) return kept;
    const std::vector<double> finer = decade_ticks(low, high, coarse);
    return finer.size() <= limit ? finer : kept;
  }
  for (const std::span<const double> some :
       {std::span<const double>(coarse), std::span<const double>(mantissas)}) {
    ticks = decade_ticks(low, high, some);
    if (ticks.size() >= 3 && ticks.size() <= limit) return ticks;
  }
  return linear_ticks(low, high, count_max);
}

std::vector<std::string> plot(std::span<const PlotCurve> curves, PlotSize size,
                              const PlotOptions& options) {
  if (size.columns < 4 || size.rows < 1) return {};
  const Axes axes = make_axes(curves, options.log_y);
  const bool x_drawn = size.rows >= 5;
  const int rows = x_drawn ? size.rows - 2 : size.rows;
  const std::vector<std::string> labels = row_labels(axes, rows);
  int label_columns = 0;
  for (const std::string& label : labels) {
    label_columns = std::max(label_columns, display_width(label));
  }
  const bool y_drawn = size.columns >= label_columns + 12;
  const int columns = y_drawn ? size.columns - label_columns - 2 : size.columns - 1;

  Canvas canvas(columns, rows);
  draw(canvas, axes, curves);
  std::vector<std::string> lines;
  for (int r = 0; r < rows; ++r) {
    const std::string& label = labels[static_cast<std::size_t>(r)];
    const std::string margin = y_drawn ? pad_left(label, label_columns) + " " : "";
    const char* axis = y_drawn && !label.empty() ? "┤" : "│";
    lines.push_back(margin + axis + canvas.row(r, options.colors));
  }
  if (x_drawn) {
    const std::string margin(static_cast<std::size_t>(y_drawn ? label_columns + 1 : 0), ' ');
    const auto [rule, x_labels] = x_axis(axes, columns, options.x_label);
    lines.push_back(margin + rule);
    lines.push_back(margin + " " + x_labels);
  }
  return lines;
}

}  // namespace pipewright::cli
