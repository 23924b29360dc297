#include "core/theory/formulas.hpp"

#include <algorithm>

namespace pipewright::theory {

std::int64_t pipedream_delay_max_steady(std::int64_t stages) {
  return (2 * stages * stages - stages) / 2;
}

std::int64_t pipedream_delay_max(std::int64_t stages) {
  return (5 * stages * stages - 4 * stages) / 4;
}

std::int64_t greedy_stash_max(std::int64_t stages, std::int64_t stage, std::int64_t cap) {
  return std::min(cap, 2 * (stages - stage) - 1);
}

std::int64_t pipedream_staleness(std::int64_t stages, std::int64_t stage) {
  return stages - 1 - stage;
}

std::int64_t pipeline_makespan(std::int64_t microbatches, std::int64_t stages) {
  return 2 * (microbatches + stages - 1);
}

double pipeline_bubble(std::int64_t microbatches, std::int64_t stages) {
  return static_cast<double>(stages - 1) / static_cast<double>(microbatches + stages - 1);
}

std::int64_t local_sgd_round(std::int64_t stages, std::int64_t replicas, std::int64_t local_steps) {
  return 2 * (std::max(replicas, stages) * (local_steps - 1) + replicas + stages - 1);
}

double strict_period(std::int64_t stages, std::int64_t busy, std::int64_t latency) {
  return static_cast<double>(busy) +
         static_cast<double>(2 * (stages - 1) * latency) / static_cast<double>(stages);
}

std::optional<std::int64_t> hiding_warm_up(std::int64_t stages, std::int64_t stage,
                                           std::int64_t busy, std::int64_t latency) {
  const std::int64_t more = (stages - 1 - stage) * 2 * latency;
  if (more % busy != 0) return std::nullopt;
  return stages - 1 - stage + more / busy;
}

}  // namespace pipewright::theory
