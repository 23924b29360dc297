// Every other protobuf message, and the JSON form of those that have one. The first byte says
// which.
#include "proto/codec/api.hpp"
#include "proto/codec/control.hpp"
#include "proto/codec/pool.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace pipewright;

namespace {

/// What is decoded can be encoded, and that is final.
template <class Encode, class Decode>
void both_ways(std::string_view bytes, Encode&& encode, Decode&& decode) {
  fuzz::may_refuse([&] {
    const std::string once = encode(decode(bytes));
    fuzz::claim(encode(decode(once)) == once, "a message comes out as it went in");
  });
}

template <class T>
void api_message(std::string_view bytes) {
  for (const WireFormat format : {WireFormat::protobuf, WireFormat::json}) {
    both_ways(
        bytes, [&](const T& message) { return encode(message, format); },
        [&](std::string_view text) { return decode<T>(text, format); });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes = fuzz::text_of(data + 1, size - 1);
  switch (data[0] % 12) {
    case 0:
      both_ways(bytes, encode_pool_frame, decode_pool_frame);
      break;
    case 1:
      both_ways(bytes, encode_daemon_frame, decode_daemon_frame);
      break;
    case 2:
      both_ways(bytes, encode_control, decode_control);
      break;
    case 3:
      both_ways(bytes, encode_event, decode_event);
      break;
    case 4:
      api_message<JobSpecBody>(bytes);
      break;
    case 5:
      api_message<Job>(bytes);
      break;
    case 6:
      api_message<JobList>(bytes);
      break;
    case 7:
      api_message<RunList>(bytes);
      break;
    case 8:
      api_message<EventList>(bytes);
      break;
    case 9:
      api_message<StreamFrame>(bytes);
      break;
    case 10:
      api_message<PoolList>(bytes);
      break;
    case 11:
      api_message<ErrorReply>(bytes);
      break;
  }
  return 0;
}
