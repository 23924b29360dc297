// From a job to a row that can run.
#pragma once

#include "core/train/job.hpp"
#include "core/train/row_runner.hpp"

namespace pipewright {

/// Sizes of the problem; with what theory needs to know, which may take seconds to compute, if the
/// job asks for it.
ObjectiveShape shape_for(const JobConfig& job, const Objective& objective);

/// Whether its rows decide about their order by themselves (`order: online` of the schedule).
bool decides_online(const JobConfig& job);

/// The row's model, starting weights and optimizers. Throws DataError for weight files that do not
/// fit, ParamError where the objective does not offer what `observe` asks for.
RowSetup make_row(const JobConfig& job, const Objective& objective, FileSource& files, Row row);

}  // namespace pipewright
