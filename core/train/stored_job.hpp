// Jobs that come back from a store or in a message.
#pragma once

#include "core/base/value.hpp"

namespace pipewright {

/// What check_job returned once, after a message, which does not keep which whole numbers are
/// reals. Opens no file: those that the job names may be gone, or be elsewhere. Throws ParamError.
Value restored_job(const Value& stored);

}  // namespace pipewright
