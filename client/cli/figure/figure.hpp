// A figure as one puts it into a paper: what is drawn, and the gnuplot script that draws it. Pure
// functions; gnuplot.hpp runs the script.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/cli/view/plot.hpp"

namespace pipewright::cli {

/// A mean between its bounds, at the x of the point of the same index.
struct Bounds {
  double low = 0;
  double high = 0;
};

struct FigureCurve {
  std::string label = {};
  std::size_t color = 0;               // curves of the same number have the same colour
  std::size_t dash = 0;                // and dashes
  std::vector<PlotPoint> points = {};  // a value that is not finite interrupts the curve
  std::vector<Bounds> band = {};       // empty, or one per point
};

enum class FigureFormat { svg, png };

struct Figure {
  std::vector<FigureCurve> curves = {};
  std::string title = {}, x_label = {}, y_label = {};
  bool log_x = false;
  bool log_y = false;
  int width_px = 720;
  int height_px = 440;
};

/// By the extension of a file's name, ".svg" or ".png". Throws ConfigError for another one.
FigureFormat figure_format_of(const std::string& path);

/// Whether a logarithmic y axis suits: all values are positive and span more than two decades.
bool suits_log_y(const std::vector<FigureCurve>& curves);

/// The mean of each point and the `count` - 1 before it (fewer at the beginning and after an
/// interruption); bounds likewise.
void smooth(FigureCurve& curve, std::size_t count);

/// At most about `points_max` points: of each of points_max / 4 equal parts of the x axis the
/// first, the lowest, the highest and the last, which is what a line of that width shows (Jugel et
/// al., "M4", 2014). Of a curve with a band only the first of each of points_max parts.
void thin(FigureCurve& curve, std::size_t points_max, bool log_x);

/// Text in single quotes for gnuplot, which does nothing to what stands in them; control characters
/// become '?'.
std::string gnuplot_quoted(std::string_view text);

/// A whole script, data included, that writes the picture to standard output. It contains no path
/// and, apart from quoted labels, no text of others. Throws ConfigError when there is no point that
/// could be drawn.
std::string gnuplot_script(const Figure& figure, FigureFormat format);

}  // namespace pipewright::cli
