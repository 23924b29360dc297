// What the runs of a job left, wherever they were executed: the tables beside the folders of the
// runs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/train/run_table.hpp"

namespace pipewright::cli {

/// summary.json of a job of many runs, without provenance. `results` as run_table wants them,
/// `failures` as text ("run 3: why").
Value many_summary(const Value& job, const JobRuns& runs, std::span<const Value> results,
                   const std::vector<std::string>& failures);

/// Writes runs.csv, summary.json and, with repeats, band.csv (from the curves in the folders of the
/// runs) to `out`. Throws DataError.
void write_tables(const JobRuns& runs, std::span<const Value> results, const Value& summary,
                  const std::string& out);

}  // namespace pipewright::cli
