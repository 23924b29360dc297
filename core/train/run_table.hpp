// What the runs of a job gave, side by side: which point is best, and whether the grid ends there.
#pragma once

#include <span>
#include <string>

#include "core/train/confidence.hpp"
#include "core/train/sweep.hpp"

namespace pipewright {

/// `summaries[i]` is what summary.json of run i holds, null for a run that failed.
///
///   runs:   [{run, swept: {KEY: value}, seed, outcome: succeeded|diverged|failed, objective_last,
///             tail_mean, stable, makespan_ticks, updates}]
///   groups: [{point, swept, runs, objective_last: {mean, low, high}, tail_mean: {mean, low, high},
///             stable}]   over the repeats of a point; 95 % confidence, null for one run
///   best:   {by_final, by_tail_mean_of_stable}, each null or {point, swept, value, edges: [{key,
///             value, side: low|high, values: how many there are}]}
///   warnings: [text]
///
/// A mean is null unless every repeat of the point succeeded. Best is the point with the lowest
/// mean (the first of equal ones), by_tail_mean_of_stable among those stable in every repeat. An
/// edge is the lowest or highest of two or more numbers that a key was swept over, unless the key
/// cannot go further.
Value run_table(const JobRuns& runs, std::span<const Value> summaries);

/// The part of a run's summary that run_table reads: whole ones of many runs would fill the memory.
Value table_part(const Value& summary);

/// The runs of a table as CSV: run, the keys, seed, outcome, objective_last, tail_mean, stable.
/// Empty where there is no value.
std::string runs_csv(const JobRuns& runs, const Value& table);

/// The band of a point as rows of CSV, `point,tick,mean,low,high` (band_csv_header).
void append_band_csv(std::string& out, std::uint32_t point, std::span<const BandRow> band);
inline constexpr const char* band_csv_header = "point,tick,mean,low,high\n";

}  // namespace pipewright
