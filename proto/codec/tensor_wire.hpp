// core's Message as one protobuf TensorMessage in one piece of memory: the header is written into
// the free room in front of the tensor's numbers, so that nothing is copied.
#pragma once

#include <cstddef>
#include <span>

#include "core/base/tensor.hpp"
#include "core/train/message.hpp"

namespace pipewright {

/// Bytes that a message takes on the wire: 256 of header and the payload.
inline constexpr std::size_t tensor_header_bytes = Buffer::headroom;

/// Writes the header in front of `message`'s tensor and gives header and payload as one span. The
/// span lives as long as the tensor. The message's tensor must not be empty.
std::span<const std::byte> encode_tensor_message(Message& message);

/// Prepares `payload` to receive a message of `bytes` on the wire and gives where to put them.
/// Throws ProtocolError when `bytes` is less than a header.
std::span<std::byte> receive_space(Buffer& payload, std::size_t bytes);

/// The message that lies at receive_space(payload, ...). Throws ProtocolError when the bytes are
/// not a TensorMessage, or its shape and type do not give its payload's length.
Message decode_tensor_message(Buffer payload);

}  // namespace pipewright
