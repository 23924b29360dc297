// How many ranks a job is to run on.
#pragma once

#include "core/base/value.hpp"

namespace pipewright {

/// What a checked job asks for: its `ranks`, or one per row of its schedule. At least 1. A pool
/// with fewer gives all that it has.
int ranks_wanted(const Value& checked_job);

}  // namespace pipewright
