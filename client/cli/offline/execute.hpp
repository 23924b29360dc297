// A run in this process that writes its files: what `run` and `replay` share.
#pragma once

#include <string>

#include "core/base/value.hpp"

namespace pipewright::cli {

struct ExecuteOptions {
  std::string out;
  bool force = false;  // also into a folder that holds other files
  bool json = false;
  bool resume = false;  // go on where an earlier execution into this folder has ended
  unsigned jobs = 0;    // runs at the same time, of a job of many; 0: as many as there are cores
};

/// Runs a checked job, of one run or of many, shows progress on standard error, writes the files to
/// `out` and the result to standard output; gives the exit status. Throws ConfigError, DataError.
int execute(const Value& checked_job, const ExecuteOptions& options);

}  // namespace pipewright::cli
