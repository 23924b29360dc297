// What a plan costs, or a run gave, as text for people.
#pragma once

#include <string>

#include "core/base/value.hpp"

namespace pipewright::cli {

/// Makespan, both bubble figures, delay, known formulas, and staleness and stash per stage, from
/// the tree that plans (core/train/plan_value.hpp) and run summaries share; a run's objective too.
/// Ticks are shown as durations as well when `tick_is_ns`.
std::string metrics_report(const Value& metrics, bool tick_is_ns, int columns_max);

/// True when a checked job gives its times as durations.
bool uses_durations(const Value& checked_job);

}  // namespace pipewright::cli
