// From a job to a row that can run.
#pragma once

#include "core/train/job.hpp"
#include "core/train/row_runner.hpp"

namespace pipewright {

/// Whether its rows decide about their order by themselves (`order: online` of the schedule).
bool decides_online(const JobConfig& job);

/// The row's model, starting weights and optimizers. Throws DataError for weight files that do not
/// fit.
RowSetup make_row(const JobConfig& job, const Objective& objective, FileSource& files, Row row);

}  // namespace pipewright
