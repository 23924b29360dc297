// What a plan and the summary of a run say alike about a schedule.
#pragma once

#include "core/sim/metrics.hpp"
#include "core/train/job.hpp"

namespace pipewright {

/// TimelineMetrics::to_value() and `known` (schedule/known.hpp). With the sizes of the problem
/// (`shape` may be null) also, of what the schedule sends and keeps: `bytes_sent` and `links`
/// [{from, to, bytes}], rows, payloads of activations and gradients alone; and per stage
/// `stash_weight_bytes_max`, the weights of its stash's distinct versions.
Value plan_value(const JobConfig& job, const TimelineMetrics& metrics, const ObjectiveShape* shape);

}  // namespace pipewright
