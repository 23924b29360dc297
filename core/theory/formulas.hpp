// Known results about pipeline schedules as pure functions of their sizes. "Paper" is Ilin and
// Richtarik, "Demystifying Pipeline Parallelism: First Theory for PipeDream", arXiv 2606.03498;
// where nothing else is said a forward and a backward take 1 tick, an update none, and links have
// no latency (the paper's time model). Sizes are at least 1; ticks, updates and microbatches are
// whole numbers.
#pragma once

#include <cstdint>
#include <optional>

namespace pipewright::theory {

/// Largest delay, in updates, of greedy PipeDream with an in-flight cap of S once its start-up is
/// over: floor(S^2 - S/2). Paper, delay of steady PipeDream.
std::int64_t pipedream_delay_max_steady(std::int64_t stages);

/// The same with the start-up: floor(5 S^2 / 4 - S). Paper, as above; for S of 2 or more (with one
/// stage nothing is ever late).
std::int64_t pipedream_delay_max(std::int64_t stages);

/// Microbatches between their F and their B at stage s: min(cap, 2 (S - s) - 1) at most under the
/// greedy rule. DESIGN.md section 4.
std::int64_t greedy_stash_max(std::int64_t stages, std::int64_t stage, std::int64_t cap);

/// Updates of its block between a microbatch's F and its U at stage s: S - 1 - s. Narayanan et al.,
/// SOSP 2019; paper.
std::int64_t pipedream_staleness(std::int64_t stages, std::int64_t stage);

/// Ticks of N microbatches through S stages and back, if a stage is never kept waiting but at the
/// beginning and the end: 2 (N + S - 1). Of greedy PipeDream with a cap of S or more (paper), and
/// of a group of N of fill-drain and of 1F1B with a flush (Huang et al., NeurIPS 2019).
std::int64_t pipeline_makespan(std::int64_t microbatches, std::int64_t stages);

/// Share of idle ticks in it: (S - 1) / (N + S - 1). Huang et al.; Narayanan et al., SC 2021.
double pipeline_bubble(std::int64_t microbatches, std::int64_t stages);

/// Ticks of a round of LocalSGD, R replicas of H local steps each in one pipeline:
/// 2 [max(R, S) (H - 1) + R + S - 1]. Paper. (Replicas with stages of their own: R = 1.)
std::int64_t local_sgd_round(std::int64_t stages, std::int64_t replicas, std::int64_t local_steps);

/// Ticks per microbatch of strict 1F1B with warm-up S - 1 - s, when F and B take tF + tB ticks and
/// a message c: (tF + tB) + 2 (S - 1) c / S. DESIGN.md section 4.
double strict_period(std::int64_t stages, std::int64_t busy, std::int64_t latency);

/// Warm-up forwards of stage s that hide this latency, (S - 1 - s) (1 + 2 c / (tF + tB)): the
/// period is tF + tB again, and the staleness is this number. Nothing where it is not whole.
std::optional<std::int64_t> hiding_warm_up(std::int64_t stages, std::int64_t stage,
                                           std::int64_t busy, std::int64_t latency);

}  // namespace pipewright::theory
