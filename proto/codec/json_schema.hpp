// JSON schemas of the messages in their JSON form, made from the messages' descriptions, so that
// they cannot say anything else than what is sent.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/base/value.hpp"

namespace pipewright {

/// {name: schema} of these messages of pipewright.v1 and of all that they contain, which refer to
/// each other as "#/components/schemas/NAME" (JSON Schema as OpenAPI 3.1 has it). Every name must
/// be that of a message.
Value json_schemas(std::span<const std::string_view> messages);

}  // namespace pipewright
