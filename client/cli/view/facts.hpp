// Parts of a summary that a plan, a run and a job of the daemon show in the same form.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/value.hpp"

namespace pipewright::cli {

/// Lines "name, text" for bytes on links, the target, a language model's results and the theory's
/// figures, as far as `summary` has them.
std::vector<std::pair<std::string, std::string>> fact_lines(const Value& summary);

/// One line each for delay and staleness (all stages together), start-up and steady: the least
/// value, a bar per value (or per few values), the largest. Empty without histograms.
std::string histogram_lines(const Value& summary);

/// Table of the known formulas: what, formula, expected, measured, whether it holds. Empty when
/// none is known.
std::string known_table(const Value& summary, int columns_max);

}  // namespace pipewright::cli
