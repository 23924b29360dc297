// Curves drawn with braille characters (2 x 4 dots each), or with a character for each curve. A
// pure function of points, size and options.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pipewright::cli {

struct PlotPoint {
  double x = 0;
  double y = 0;
  friend bool operator==(const PlotPoint&, const PlotPoint&) = default;
};

struct PlotCurve {
  std::span<const PlotPoint> points;      // in the order in which they are joined
  std::optional<std::size_t> style = {};  // of curve_color and curve_mark; else its own number
};

struct PlotSize {
  int columns = 80;  // of the whole picture, axes and labels included
  int rows = 20;
};

struct PlotOptions {
  bool log_y = true;  // linear anyway when no value is above 0
  bool log_x = false;
  double x_tail = 1;         // show this last part of x only
  bool colors = false;       // each curve in the colour curve_color() gives
  bool marks = false;        // each curve by the character curve_mark() gives, rather than by dots
  bool mark_faults = false;  // a × where a curve stops being finite
  std::string x_label = {};
};

/// The picture, one string per line, none wider than `size.columns`. Points that are not finite
/// (or, on a log axis, not above 0) interrupt their curve. Axes are left out where there is no room
/// for them; nothing is drawn in less than 4 columns or 1 row.
std::vector<std::string> plot(std::span<const PlotCurve> curves, PlotSize size,
                              const PlotOptions& options);

/// Round values within [low, high], at most about `count_max`: 1, 2, 5 times a power of ten; on a
/// log axis decades, or finer if there are less than two.
std::vector<double> axis_ticks(double low, double high, bool log, int count_max);

/// So many curves have a colour and a mark of their own; those beyond are dashed.
inline constexpr std::size_t curve_colors = 8;
/// The escape code that begins the colour of curve `index`; "\x1b[0m" ends it. Of the 256 colours
/// of terminals those next to the palette of Okabe and Ito ("Color Universal Design", 2008), which
/// people with any kind of colour vision can tell apart.
std::string curve_color(std::size_t index);
char curve_mark(std::size_t index);

}  // namespace pipewright::cli
