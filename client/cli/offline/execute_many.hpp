// A job of many runs in this process, several at a time.
#pragma once

#include "client/cli/offline/execute.hpp"

namespace pipewright::cli {

/// Writes each run's files to a folder of its own, then summary.json, runs.csv and, with repeats,
/// band.csv to `options.out`; shows the table. What is written does not depend on how many run at a
/// time. Gives the exit status: that of a failure when one of the runs could not be executed.
int execute_many(const Value& checked_job, const ExecuteOptions& options);

}  // namespace pipewright::cli
