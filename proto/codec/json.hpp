// JSON text as a tree.
#pragma once

#include <string_view>

#include "core/base/value.hpp"

namespace pipewright {

/// What to_json wrote (but for the order of keys, which are sorted); null for an empty text. Throws
/// ProtocolError.
Value value_from_json(std::string_view text);

}  // namespace pipewright
