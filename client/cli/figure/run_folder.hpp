// The folders that `run` and `export` write, read back as curves.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "client/cli/figure/figure.hpp"
#include "core/base/value.hpp"

namespace pipewright::cli {

struct RunFolder {
  std::filesystem::path path;
  std::string name;               // of the job, may be empty
  bool in_durations = false;      // one tick is a nanosecond
  std::optional<double> optimum;  // f*, where the run knew it
};

/// What a folder's summary.json says of it; nothing is known of a run without one. Throws
/// ConfigError when there is no run in the folder.
RunFolder open_run_folder(const std::filesystem::path& path);

/// `x` is "tick", "updates" or "microbatches" (those that have been through the last stage by
/// then). `series` is "objective", "loss" (of the last stage), "gap" (objective - `optimum`, or the
/// folder's own), "validation", or a column of theory.csv. Throws ConfigError for what this run
/// does not have.
FigureCurve read_curve(const RunFolder& folder, const std::string& x, const std::string& series,
                       std::optional<double> optimum);

/// What stands beside the axis.
std::string label_of_x(const std::string& x);
std::string label_of_series(const std::string& series);

}  // namespace pipewright::cli
