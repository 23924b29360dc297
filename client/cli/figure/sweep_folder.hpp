// The folders that a job of many runs leaves (docs/sweeps.md): run-NNNN/, summary.json with the
// table of the runs, and band.csv.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/figure/figure.hpp"

namespace pipewright::cli {

struct SweepFolder {
  std::filesystem::path path;
  std::string name;                   // of the job, may be empty
  std::vector<std::string> points;    // "learning_rate = 0.1, stages = 4"
  std::uint32_t repeats = 1;          // runs of each point
  std::optional<std::uint32_t> best;  // the point with the lowest mean of the last objective
};

bool is_sweep_folder(const std::filesystem::path& path);

/// Throws ConfigError when its summary.json does not hold the table of the runs.
SweepFolder open_sweep_folder(const std::filesystem::path& path);

/// The folder of a point's run; it may not be there if the run failed.
std::filesystem::path folder_of_run(const SweepFolder& sweep, std::uint32_t point,
                                    std::uint32_t repeat);

/// The mean objective of a point's repeats by tick, with its confidence interval. Throws
/// ConfigError for a sweep without repeats.
FigureCurve read_band(const SweepFolder& sweep, std::uint32_t point);

}  // namespace pipewright::cli
