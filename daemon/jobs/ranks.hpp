// How many ranks the runs of a job are to have.
#pragma once

#include "core/train/sweep.hpp"

namespace pipewright {

/// What each run of a checked job gets: the job's `ranks`, or one per row of its schedule. Of a job
/// of many runs on the virtual clock the default is 1, for then the most runs are side by side, and
/// the numbers are the same on any number of ranks. When the runs differ, the most that one of them
/// asks for. At least 1. A pool with fewer gives all that it has.
int ranks_wanted(const JobRuns& runs);

}  // namespace pipewright
