// Where the curves of a figure come from: jobs of the daemon, folders of runs, columns of CSV
// files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/figure/figure.hpp"
#include "client/cli/net/endpoint.hpp"

namespace pipewright::cli {

/// What of a source is drawn.
struct CurveChoice {
  EndpointFlags endpoint = {};
  std::string x = {};                    // empty: tick; of a table its first column
  std::vector<std::string> series = {};  // empty: objective; of a table all but x
  bool gap = false;                      // f - f* in place of the objective
  std::optional<double> optimum = {};    // f*, if the run does not know it
  bool best = false;                     // of many runs
  bool band = false;                     // means over repeats
};

/// Curves of one source, labelled by what tells them from each other: series, points of a sweep.
struct SourceCurves {
  std::string name, other_name;  // of the source; the other one is never empty
  std::vector<FigureCurve> curves = {};
  std::string x_label = {}, y_label = {};
  bool in_durations = false;
};

class TemporaryFolder {
 public:
  /// Throws Error when it cannot be made.
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// `source` is a job's id (only digits), a folder or a CSV file. Jobs are brought to `scratch`.
/// Throws ConfigError and DataError for what is not there, and as the daemon's functions do.
SourceCurves read_source(const CurveChoice& choice, const std::string& source,
                         const TemporaryFolder& scratch);

}  // namespace pipewright::cli
