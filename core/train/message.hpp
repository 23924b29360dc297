// What rows send each other while they train. On ranks it travels as a protobuf TensorMessage.
#pragma once

#include <cstdint>

#include "core/base/ids.hpp"
#include "core/base/tensor.hpp"

namespace pipewright {

enum class MessageKind : std::uint8_t {
  activation = 1,
  gradient = 2,
  evaluation = 3,  // partial full objective, on to the next stage
  weights = 4,     // of a replica's block, to be averaged at a sync
  average = 5,     // the other way
  barrier = 6,     // a row has come to a sync
  release = 7,     // all rows have; `arrival` is when the last did
  observed = 8,    // weights of a replica's block, for an observation of the average
  updated = 9,     // a block update has ended: to row 0, which may admit another microbatch of RPD
  full_gradient = 10,  // of the full objective, on its way back to the stage before
  evaluated = 11,      // the last stage is done with a part of an evaluation: to row 0
};

struct Message {
  MessageKind kind = MessageKind::activation;
  Stage from_stage;
  Row to_row;
  Microbatch microbatch;  // of an observation its number, of a sync the round
  Replica replica;
  WeightVersion weight_version;  // of the sender's block; of an evaluation its part
  Tick sent;
  Tick arrival;  // when the receiver may use it
  Tensor tensor;
};

}  // namespace pipewright
