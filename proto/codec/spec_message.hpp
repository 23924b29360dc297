// A job's Value tree as a JobSpec message and back. Internal to proto/codec.
//
// Struct knows doubles only and has no order: whole numbers below 2^53 come back as integers
// whichever they were, and keys come back sorted. A key whose value does not fit its field of the
// message (the tree need not have been checked) travels in `more`, so nothing is lost on the way to
// the check.
#pragma once

#include "core/base/value.hpp"
#include "pipewright/v1/job.pb.h"

namespace pipewright {

/// Throws ConfigError for what a message cannot carry: whole numbers of 2^53 and above, maps and
/// lists nested deeper than value_depth_max.
void put(const Value& tree, v1::JobSpec& message);

/// Throws ProtocolError.
Value get(const v1::JobSpec& message);

/// Throws ProtocolError.
Value get(const google::protobuf::Value& message);

/// Keys and values in their order. Throw as the functions above.
void put(const Value::Map& keys, google::protobuf::RepeatedPtrField<v1::Swept>& message);
Value::Map get(const google::protobuf::RepeatedPtrField<v1::Swept>& message);

}  // namespace pipewright
