// Bytes of generated messages, in both formats. Internal to proto/codec.
#pragma once

#include <string>
#include <string_view>

#include <google/protobuf/message.h>

#include "core/base/error.hpp"
#include "core/base/utf8.hpp"
#include "proto/codec/api.hpp"

namespace pipewright::wire {

/// Bytes of a message; the same message always gives the same bytes.
std::string serialize(const google::protobuf::Message& message, WireFormat format);

/// Throws ProtocolError "not a valid NAME: why".
void parse(std::string_view bytes, WireFormat format, google::protobuf::Message& message);

[[noreturn]] void refuse(std::string_view message_name, const std::string& why);

/// The number of an enumeration whose 0 means "not given", as the plain form's enum (same numbers).
template <class Plain>
Plain enum_from(int number, bool valid, std::string_view message_name, std::string_view field) {
  if (!valid || number == 0) {
    refuse(message_name, std::string(field) + (number == 0 ? " is missing" : " is unknown: ") +
                             (number == 0 ? "" : std::to_string(number)));
  }
  return static_cast<Plain>(number);
}

/// Unsigned numbers of the wire that are counts and ids here: refused when they would be negative.
std::int64_t count_from(std::uint64_t number, std::string_view message_name,
                        std::string_view field);

}  // namespace pipewright::wire
