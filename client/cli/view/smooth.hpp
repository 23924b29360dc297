// Smoothing of curves, as the web page does it (client/web/src/curves/smooth.ts).
#pragma once

#include <span>
#include <vector>

#include "client/cli/view/plot.hpp"

namespace pipewright::cli {

/// An exponential mean over x: a point at distance d behind counts exp(-d / width), however densely
/// points lie. Normalised, so the start is not drawn towards anything; starts anew behind values
/// that are not finite, which stay as they are. The points as they are for a width of 0.
std::vector<PlotPoint> smoothed(std::span<const PlotPoint> points, double width);

/// The width for a strength of 1 to 100 of a curve that long in x: 0.05 % to 20 % of it, each step
/// by the same factor; 0 for 0.
double smoothing_width(int strength, double length);

}  // namespace pipewright::cli
