// What rows send each other while they train. On ranks it travels as a protobuf TensorMessage.
#pragma once

#include <cstdint>

#include "core/base/ids.hpp"
#include "core/base/tensor.hpp"

namespace pipewright {

enum class MessageKind : std::uint8_t { activation = 1, gradient = 2, evaluation = 3, weights = 4 };

struct Message {
  MessageKind kind = MessageKind::activation;
  Stage from_stage;
  Row to_row;
  Microbatch microbatch;  // of an evaluation: the number of the observation
  Replica replica;
  WeightVersion weight_version;  // of the sender's block
  Tick sent;
  Tick arrival;  // when the receiver may use it
  Tensor tensor;
};

}  // namespace pipewright
