#include "proto/codec/json.hpp"

#include <google/protobuf/struct.pb.h>

#include "proto/codec/spec_message.hpp"
#include "proto/codec/wire.hpp"

namespace pipewright {

Value value_from_json(std::string_view text) {
  if (text.empty()) return {};
  google::protobuf::Value message;
  wire::parse(text, WireFormat::json, message);
  return get(message);
}

}  // namespace pipewright
