// A timeline as text: one row per stage, one column per tick.
#pragma once

#include <string>
#include <vector>

#include "core/sim/timeline.hpp"

namespace pipewright {

/// Rows of words, one word per tick: "F3", "B0" or "." for an idle tick; F and B only, up to the
/// makespan. An action of several ticks is repeated. Times are first divided by their greatest
/// common divisor; throws ConfigError when that still needs more than 10,000 columns.
std::vector<std::string> rows_of(const Timeline& timeline);

}  // namespace pipewright
