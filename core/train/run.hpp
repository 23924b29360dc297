// A run in one process on the virtual clock: the same rows, the same coordinator, no ranks.
#pragma once

#include <functional>
#include <vector>

#include "core/train/run_control.hpp"

namespace pipewright {

struct RunHooks {
  /// Called now and then with what has been done and the totals.
  std::function<void(const RunControl&)> progress;
  /// Asked now and then; true ends the run with ConfigError("cancelled").
  std::function<bool()> cancelled;
};

struct RunResult {
  Value summary;  // without wall time and provenance
  Tensor weights;
  std::optional<Divergence> divergence;
};

/// Throws ConfigError, DataError.
RunResult run_in_process(const JobConfig& job, FileSource& files, std::vector<RunSink*> sinks,
                         const RunHooks& hooks = {});
/// The same with an objective that has been loaded.
RunResult run_in_process(const JobConfig& job, const Objective& objective, FileSource& files,
                         std::vector<RunSink*> sinks, const RunHooks& hooks = {});

}  // namespace pipewright
