// The body of a submission.
#pragma once

#include <string_view>

#include "core/base/value.hpp"
#include "core/train/data_roots.hpp"

namespace pipewright {

/// Media type without its parameters, in lower case: "application/json".
std::string media_type(std::string_view content_type);

/// The checked job of a body in protobuf, JSON or YAML. Throws ParamError, ConfigError or
/// ProtocolError for a bad one, HttpFault (415) for another Content-Type.
Value job_from_body(std::string_view content_type, std::string_view body,
                    const DataRoots& roots = {});

}  // namespace pipewright
