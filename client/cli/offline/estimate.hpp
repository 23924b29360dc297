// What a job will take, before it runs: its schedule is walked and its data loaded, nothing is
// computed.
#pragma once

#include <cstdint>

#include "core/train/job.hpp"

namespace pipewright::cli {

struct Estimate {
  ObjectiveShape shape;
  int stages = 0;
  /// Only the beginning of a long schedule was walked, and the rest taken to go on like it.
  bool extrapolated = false;
  std::int64_t makespan_ticks = 0;
  std::int64_t actions = 0;
  std::int64_t updates = 0;
  std::int64_t microbatches = 0;
  std::int64_t observations = 0;  // of the full objective
  std::int64_t messages = 0;      // activations and gradients between stages
  std::int64_t evaluation_messages = 0;
  std::int64_t message_bytes = 0;  // of both, headers and payloads
  std::int64_t memory_bytes = 0;   // data, weights and stash of all stages together
  std::int64_t memory_bytes_max_of_a_stage = 0;
  std::int64_t disk_bytes = 0;  // of the files that the run leaves
  Value to_value() const;
};

/// Walks at most `actions_max` actions. Throws ConfigError, DataError.
Estimate estimate(const JobConfig& job, FileSource& files, std::int64_t actions_max);

}  // namespace pipewright::cli
