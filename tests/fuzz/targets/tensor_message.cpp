// Messages between ranks, as they lie on the wire.
#include <algorithm>
#include <cstring>

#include "proto/codec/tensor_wire.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace pipewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::may_refuse([&] {
    Buffer payload;
    const std::span<std::byte> space = receive_space(payload, size);
    std::memcpy(space.data(), data, size);
    Message message = decode_tensor_message(std::move(payload));
    const std::span<const std::byte> bytes = encode_tensor_message(message);
    fuzz::claim(bytes.size() == size, "a message keeps its length");
    const std::string first(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    Buffer again;
    const std::span<std::byte> second_space = receive_space(again, size);
    std::memcpy(second_space.data(), first.data(), size);
    Message second = decode_tensor_message(std::move(again));
    const std::span<const std::byte> twice = encode_tensor_message(second);
    fuzz::claim(
        std::equal(twice.begin(), twice.end(), reinterpret_cast<const std::byte*>(first.data())),
        "a message comes out as it went in");
  });
  return 0;
}
