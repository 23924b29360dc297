// Schedules that update once per group of microbatches, at its flush, differ in their warm-up only.
#pragma once

#include <functional>

#include "core/schedule/strict.hpp"

namespace pipewright {

/// Warm-up forwards per stage, for groups of so many microbatches.
using WarmUp = std::function<std::vector<std::int64_t>(int stages, std::int64_t group)>;

/// A kind with the parameters stages, microbatches and accumulate (microbatches per update;
/// default: all), whose update takes the mean gradient of its group.
ScheduleKind flush_kind(std::string name, std::string summary, WarmUp warm_up);

}  // namespace pipewright
