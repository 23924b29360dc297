#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>

#include <google/protobuf/unknown_field_set.h>

#include "core/base/error.hpp"
#include "pipewright/v1/tensor.pb.h"
#include "proto/codec/tensor_wire.hpp"

namespace pipewright {
namespace {

Message a_message(DType dtype, Shape shape) {
  Message message;
  message.kind = MessageKind::gradient;
  message.from_stage = Stage(3);
  message.to_row = Row(2);
  message.microbatch = Microbatch(70'000);
  message.replica = Replica(1);
  message.weight_version = WeightVersion(12);
  message.sent = Tick(5'000'000'000);
  message.arrival = Tick(5'000'000'250);
  message.tensor = Tensor(dtype, shape);
  for (std::size_t i = 0; i < message.tensor.bytes(); ++i) {
    message.tensor.buffer().data()[i] = static_cast<std::byte>(i * 7);
  }
  return message;
}

Message received(std::span<const std::byte> bytes) {
  Buffer payload;
  const auto space = receive_space(payload, bytes.size());
  std::memcpy(space.data(), bytes.data(), bytes.size());
  return decode_tensor_message(std::move(payload));
}

void expect_same(const Message& a, const Message& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.from_stage, b.from_stage);
  EXPECT_EQ(a.to_row, b.to_row);
  EXPECT_EQ(a.microbatch, b.microbatch);
  EXPECT_EQ(a.replica, b.replica);
  EXPECT_EQ(a.weight_version, b.weight_version);
  EXPECT_EQ(a.sent, b.sent);
  EXPECT_EQ(a.arrival, b.arrival);
  EXPECT_EQ(a.tensor.dtype(), b.tensor.dtype());
  EXPECT_EQ(a.tensor.shape(), b.tensor.shape());
  ASSERT_EQ(a.tensor.bytes(), b.tensor.bytes());
  EXPECT_EQ(std::memcmp(a.tensor.buffer().data(), b.tensor.buffer().data(), a.tensor.bytes()), 0);
}

std::vector<Message> many_messages() {
  std::vector<Message> messages;
  for (const Shape& shape :
       {Shape{5}, Shape{16, 32, 64}, Shape{1, 2, 3, 4}, Shape{0}, Shape{}, Shape{7, 0}}) {
    messages.push_back(a_message(DType::float32, shape));
    messages.push_back(a_message(DType::float64, shape));
  }
  Message zeros;
  zeros.tensor = Tensor::zeros(DType::float64, {40'000});
  messages.push_back(std::move(zeros));
  Message largest = a_message(DType::float32, {3});
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  largest.from_stage = Stage(std::numeric_limits<std::int32_t>::max());
  largest.to_row = Row(std::numeric_limits<std::int32_t>::max());
  largest.replica = Replica(std::numeric_limits<std::int32_t>::max());
  largest.microbatch = Microbatch(most);
  largest.weight_version = WeightVersion(most);
  largest.sent = largest.arrival = Tick(most);
  messages.push_back(std::move(largest));
  return messages;
}

TEST(TensorWire, MessagesComeBackAsTheyWere) {
  for (Message& message : many_messages()) {
    const Message back = received(encode_tensor_message(message));
    expect_same(message, back);
  }
}

TEST(TensorWire, TheBytesAreATensorMessageOfTheGeneratedClass) {
  for (Message& message : many_messages()) {
    const auto bytes = encode_tensor_message(message);
    ASSERT_EQ(bytes.size(), tensor_header_bytes + message.tensor.bytes());
    v1::TensorMessage parsed;
    ASSERT_TRUE(parsed.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
    EXPECT_EQ(parsed.kind(), static_cast<int>(message.kind));
    EXPECT_EQ(parsed.microbatch(), static_cast<std::uint64_t>(message.microbatch.value));
    EXPECT_EQ(parsed.arrival_tick(), static_cast<std::uint64_t>(message.arrival.value));
    EXPECT_EQ(parsed.shape_size(), message.tensor.shape().rank);
    ASSERT_EQ(parsed.payload().size(), message.tensor.bytes());
    EXPECT_EQ(std::memcmp(parsed.payload().data(), message.tensor.buffer().data(),
                          parsed.payload().size()),
              0);
    EXPECT_EQ(parsed.GetReflection()->GetUnknownFields(parsed).field_count(), 0);
  }
}

TEST(TensorWire, WhatTheGeneratedClassWritesIsRead) {
  for (Message& message : many_messages()) {
    const auto bytes = encode_tensor_message(message);
    v1::TensorMessage generated;
    ASSERT_TRUE(generated.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
    if (generated.payload().empty()) continue;  // proto3 leaves out an empty payload altogether
    const std::string written = generated.SerializeAsString();
    expect_same(received(std::as_bytes(std::span(written))), message);
  }
}

TEST(TensorWire, ThePayloadStaysWhereItIsAndNothingIsAllocated) {
  Message message = a_message(DType::float64, {100});
  received(encode_tensor_message(message));  // fills the free list
  const std::int64_t before = Buffer::system_allocations();
  for (int i = 0; i < 10; ++i) {
    const auto bytes = encode_tensor_message(message);
    EXPECT_EQ(bytes.data() + tensor_header_bytes, message.tensor.buffer().data());
    Buffer payload;
    const auto space = receive_space(payload, bytes.size());
    std::memcpy(space.data(), bytes.data(), bytes.size());
    const std::byte* const where = payload.data();
    const Message back = decode_tensor_message(std::move(payload));
    EXPECT_EQ(back.tensor.buffer().data(), where);
  }
  EXPECT_EQ(Buffer::system_allocations(), before);
}

std::string fault_of(std::string bytes) {
  try {
    received(std::as_bytes(std::span(bytes)));
  } catch (const ProtocolError& error) {
    return error.what();
  }
  return "";
}

std::string bytes_of(Message& message) {
  const auto bytes = encode_tensor_message(message);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(TensorWire, APayloadOfAnotherLengthThanItsShapeIsRefused) {
  Message message = a_message(DType::float64, {4});
  std::string bytes = bytes_of(message);
  EXPECT_NE(fault_of(bytes.substr(0, bytes.size() - 8)), "");
  EXPECT_NE(fault_of(bytes + "12345678"), "");

  v1::TensorMessage other;
  ASSERT_TRUE(other.ParseFromString(bytes));
  other.set_shape(0, 5);
  EXPECT_EQ(fault_of(other.SerializeAsString()),
            "not a valid TensorMessage: a payload of 32 bytes for the shape [5] of float64");
}

TEST(TensorWire, ShapesWhoseProductOverflowsAreRefused) {
  Message message = a_message(DType::float64, {4, 1, 1, 1});
  v1::TensorMessage other;
  ASSERT_TRUE(other.ParseFromString(bytes_of(message)));
  for (int i = 0; i < 4; ++i) other.set_shape(i, 1u << 31);
  other.mutable_padding()->resize(other.padding().size() - 16);
  EXPECT_NE(fault_of(other.SerializeAsString()).find("for the shape"), std::string::npos);
}

TEST(TensorWire, APayloadThatDoesNotBeginAtByte256IsRefused) {
  Message message = a_message(DType::float64, {100});
  v1::TensorMessage other;
  ASSERT_TRUE(other.ParseFromString(bytes_of(message)));
  for (const std::size_t padding : {std::size_t{0}, other.padding().size() - 1, std::size_t{300}}) {
    other.mutable_padding()->resize(padding);
    EXPECT_NE(fault_of(other.SerializeAsString()), "") << padding;
  }
}

TEST(TensorWire, FewerBytesThanAHeaderAreRefused) {
  Buffer payload;
  EXPECT_THROW(receive_space(payload, 255), ProtocolError);
  EXPECT_NE(fault_of(std::string(256, '\0')), "");
}

TEST(TensorWire, MutatedHeadersAreRefusedOrReadButNeverCrash) {
  Message message = a_message(DType::float32, {2, 3});
  const std::string valid = bytes_of(message);
  std::mt19937 random(3);
  int refused = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string bytes = valid;
    for (std::uint32_t n = random() % 3 + 1; n > 0; --n) {
      bytes[random() % (i % 2 == 0 ? 60 : tensor_header_bytes)] = static_cast<char>(random());
    }
    if (!fault_of(bytes).empty()) ++refused;
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace pipewright
