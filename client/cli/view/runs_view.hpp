// The table of a job of many runs (core/train/run_table.hpp) in readable form.
#pragma once

#include <string>
#include <string_view>

#include "core/base/value.hpp"

namespace pipewright::cli {

/// A line per run, or per point when there are repeats, with the best ones marked; then the best
/// points, and warnings. Of more than `rows_max` lines those with the lowest objective are shown,
/// and how many there are in all.
std::string format_run_table(const Value& table, int columns_max = 0, std::size_t rows_max = 60);

/// "learning_rate = 0.1, stages = 4"; keys by their last part where that tells them apart.
std::string format_swept(const Value& swept);

}  // namespace pipewright::cli
