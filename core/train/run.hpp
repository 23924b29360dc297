// A run in one process on the virtual clock: the same rows, the same coordinator, no ranks.
#pragma once

#include <functional>
#include <vector>

#include "core/train/checkpoint.hpp"
#include "core/train/run_control.hpp"

namespace pipewright {

struct RunHooks {
  /// Called now and then with what has been done and the totals.
  std::function<void(const RunControl&)> progress;
  /// Asked now and then; true ends the run with ConfigError("cancelled").
  std::function<bool()> cancelled;
  /// Where the run's checkpoints go, if the job asks for any, and what it goes on from.
  CheckpointStore* checkpoints = nullptr;
};

struct RunResult {
  Value summary;  // without wall time and provenance
  Tensor weights;
  std::optional<Divergence> divergence;
};

/// Throws ConfigError, DataError. A run that goes on from a checkpoint gives everything from its
/// beginning to the sinks.
RunResult run_in_process(const JobConfig& job, FileSource& files, std::vector<RunSink*> sinks,
                         const RunHooks& hooks = {});
/// The same with an objective that has been loaded.
RunResult run_in_process(const JobConfig& job, const Objective& objective, FileSource& files,
                         std::vector<RunSink*> sinks, const RunHooks& hooks = {});

}  // namespace pipewright
