#include "client/cli/view/plot.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "client/cli/view/range.hpp"
#include "client/cli/view/text.hpp"

namespace pipewright::cli {

namespace {

/// One direction: what is shown of it, after the logarithm when `log`.
struct Axis {
  Range range;
  bool log = false;

  bool shows(double value) const { return std::isfinite(value) && (!log || value > 0); }
  double place(double value) const { return log ? std::log10(value) : value; }
  double value(double place) const { return log ? std::pow(10, place) : place; }
  double low() const { return value(range.low); }
  double high() const { return value(range.high); }
};

struct Axes {
  Axis x, y;
  bool shows(const PlotPoint& p) const { return x.shows(p.x) && y.shows(p.y); }
};

bool any_of(std::span<const PlotCurve> curves, auto&& condition) {
  return std::any_of(curves.begin(), curves.end(), [&](const PlotCurve& curve) {
    return std::any_of(curve.points.begin(), curve.points.end(), condition);
  });
}

/// The last part of what would be shown in x.
void keep_tail(Axis& x, double part) {
  if (!(part < 1) || x.range.empty()) return;
  const double low = x.low(), high = x.high();
  x.range.low = x.place(high - part * (high - low));
}

Axes make_axes(std::span<const PlotCurve> curves, const PlotOptions& options) {
  Axes axes;
  const auto above_zero = [](double value) { return std::isfinite(value) && value > 0; };
  axes.x.log = options.log_x && any_of(curves, [&](const PlotPoint& p) { return above_zero(p.x); });
  axes.y.log = options.log_y && any_of(curves, [&](const PlotPoint& p) { return above_zero(p.y); });
  const auto each_shown = [&](auto&& visit) {
    for (const PlotCurve& curve : curves) {
      for (const PlotPoint& p : curve.points) {
        if (axes.shows(p)) visit(p);
      }
    }
  };
  each_shown([&](const PlotPoint& p) { axes.x.range.add(axes.x.place(p.x)); });
  keep_tail(axes.x, options.x_tail);
  each_shown([&](const PlotPoint& p) {
    if (axes.x.place(p.x) >= axes.x.range.low) axes.y.range.add(axes.y.place(p.y));
  });
  if (axes.x.range.empty()) axes.x.range = {0, 1}, axes.y.range = {0, 1};
  if (axes.x.range.low == axes.x.range.high) axes.x.range.high = axes.x.range.low + 1;
  Range& y = axes.y.range;
  if (y.low == y.high) {  // a constant curve runs through the middle
    const double margin = axes.y.log ? 0.1 : std::max(std::abs(y.low) * 0.1, 1e-300);
    const double spread = y.low == 0 && !axes.y.log ? 1 : margin;
    y = {y.low - spread, y.high + spread};
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

  /// `dashed`: with gaps, for curves beyond the number of colours.
  void line(int x0, int y0, int x1, int y1, std::size_t curve) {
    const bool dashed = curve >= curve_colors;
    const int steps = std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1});
    for (int i = 0; i <= steps; ++i) {
      const double part = static_cast<double>(i) / steps;
      const int x = x0 + static_cast<int>(std::lround(part * (x1 - x0)));
      if (dashed && x % 6 >= 3) continue;
      dot(x, y0 + static_cast<int>(std::lround(part * (y1 - y0))), curve);
    }
  }

  /// Where a curve has stopped being finite.
  void fault(int x, int y, std::size_t curve) {
    const auto cell = static_cast<std::size_t>(y / 4 * columns_ + x / 2);
    faults_[cell] = true;
    bits_[cell] |= 1U;
    owner_[cell] = curve;
  }

  std::string row(int r, bool colors, bool marks) const {
    std::string out;
    std::string color;
    for (int c = 0; c < columns_; ++c) {
      const auto cell = static_cast<std::size_t>(r * columns_ + c);
      if (bits_[cell] == 0) {
        out += ' ';
        continue;
      }
      if (colors && color != curve_color(owner_[cell])) out += color = curve_color(owner_[cell]);
      out += faults_[cell] ? "×" : marks ? std::string(1, curve_mark(owner_[cell])) : dots(cell);
    }
    if (!color.empty()) return out + "\x1b[0m";
    return out.erase(out.find_last_not_of(' ') + 1);
  }

 private:
  std::string dots(std::size_t cell) const {
    return {'\xE2',  // U+2800 + bits in UTF-8
            static_cast<char>(0xA0 + (bits_[cell] >> 6U)),
            static_cast<char>(0x80 + (bits_[cell] & 0x3FU))};
  }

  int columns_, rows_;
  std::vector<std::uint8_t> bits_;
  std::vector<std::size_t> owner_;
  std::vector<bool> faults_ = std::vector<bool>(bits_.size(), false);
};

int place(double value, const Range& range, int count) {
  const double part = (value - range.low) / (range.high - range.low);
  return std::clamp(static_cast<int>(std::lround(part * (count - 1))), 0, count - 1);
}

/// One curve at a time: from point to point, and a mark where it stops being finite.
class Pen {
 public:
  Pen(Canvas& canvas, const Axes& axes, std::size_t curve)
      : canvas_(canvas), axes_(axes), curve_(curve) {}

  void go_on(const PlotPoint& p, bool mark_faults) {
    if (!std::isfinite(p.y)) {
      if (mark_faults && !in_fault_ && in_range(p)) canvas_.fault(x_of(p), y_, curve_);
      in_fault_ = true;
      joined_ = false;
      return;
    }
    in_fault_ = false;
    if (!axes_.shows(p) || !in_range(p)) {
      joined_ = false;
      return;
    }
    const int x = x_of(p);
    const int y =
        canvas_.dots_high() - 1 - place(axes_.y.place(p.y), axes_.y.range, canvas_.dots_high());
    canvas_.line(joined_ ? x_ : x, joined_ ? y_ : y, x, y, curve_);
    joined_ = true;
    x_ = x, y_ = y;
  }

 private:
  bool in_range(const PlotPoint& p) const {
    return axes_.x.shows(p.x) && axes_.x.place(p.x) >= axes_.x.range.low;
  }
  int x_of(const PlotPoint& p) const {
    return place(axes_.x.place(p.x), axes_.x.range, canvas_.dots_wide());
  }

  Canvas& canvas_;
  const Axes& axes_;
  std::size_t curve_;
  bool joined_ = false, in_fault_ = false;
  int x_ = 0, y_ = 0;
};

void draw(Canvas& canvas, const Axes& axes, std::span<const PlotCurve> curves, bool mark_faults) {
  for (std::size_t i = 0; i < curves.size(); ++i) {
    Pen pen(canvas, axes, curves[i].style.value_or(i));
    for (const PlotPoint& p : curves[i].points) pen.go_on(p, mark_faults);
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
std::vector<std::string> row_labels(const Axis& y, int rows) {
  const double low = y.low(), high = y.high();
  const std::vector<double> ticks = axis_ticks(low, high, y.log, std::max(2, (rows + 1) / 2));
  std::vector<std::string> labels(static_cast<std::size_t>(rows));
  const double step = ticks.size() > 1 ? std::abs(ticks[1] - ticks[0]) : high - low;
  const int digits = static_cast<int>(std::clamp(
      std::ceil(std::log10(std::max(std::abs(low), std::abs(high)) / step)) + 1, 4., 15.));
  for (const double tick : ticks) {
    const int dot = rows * 4 - 1 - place(y.place(tick), y.range, rows * 4);
    std::string& label = labels[static_cast<std::size_t>(dot / 4)];
    if (label.empty()) label = std::abs(tick) < step * 1e-9 ? "0" : format_short(tick, digits);
  }
  return labels;
}

/// The two lines below the picture.
std::array<std::string, 2> x_axis(const Axis& x, int columns, const std::string& x_label) {
  std::vector<std::string> rule(static_cast<std::size_t>(columns), "─");
  std::string labels(static_cast<std::size_t>(columns), ' ');
  const int label_columns = display_width(x_label);
  const bool labelled = label_columns > 0 && label_columns + 8 < columns;
  const int free_columns = labelled ? columns - label_columns - 1 : columns;
  int next_free = 0;
  for (const double tick : axis_ticks(x.low(), x.high(), x.log, std::max(2, columns / 10))) {
    const std::string label = format_si(tick);
    const int width = static_cast<int>(label.size());
    const int at = place(x.place(tick), x.range, columns);
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
  constexpr std::array<int, curve_colors> colors{74, 166, 36, 175, 178, 32, 221, 250};
  return "\x1b[38;5;" + std::to_string(colors[index % colors.size()]) + "m";
}

char curve_mark(std::size_t index) {
  constexpr std::string_view marks = "*+xo#@%&";
  return marks[index % marks.size()];
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
  const Axes axes = make_axes(curves, options);
  const bool x_drawn = size.rows >= 5;
  const int rows = x_drawn ? size.rows - 2 : size.rows;
  const std::vector<std::string> labels = row_labels(axes.y, rows);
  int label_columns = 0;
  for (const std::string& label : labels) {
    label_columns = std::max(label_columns, display_width(label));
  }
  const bool y_drawn = size.columns >= label_columns + 12;
  const int columns = y_drawn ? size.columns - label_columns - 2 : size.columns - 1;

  Canvas canvas(columns, rows);
  draw(canvas, axes, curves, options.mark_faults);
  std::vector<std::string> lines;
  for (int r = 0; r < rows; ++r) {
    const std::string& label = labels[static_cast<std::size_t>(r)];
    const std::string margin = y_drawn ? pad_left(label, label_columns) + " " : "";
    const char* axis = y_drawn && !label.empty() ? "┤" : "│";
    lines.push_back(margin + axis + canvas.row(r, options.colors, options.marks));
  }
  if (x_drawn) {
    const std::string margin(static_cast<std::size_t>(y_drawn ? label_columns + 1 : 0), ' ');
    const auto [rule, x_labels] = x_axis(axes.x, columns, options.x_label);
    lines.push_back(margin + rule);
    lines.push_back(margin + " " + x_labels);
  }
  return lines;
}

}  // namespace pipewright::cli
