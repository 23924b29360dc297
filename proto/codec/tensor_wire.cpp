#include "proto/codec/tensor_wire.hpp"

#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include "pipewright/v1/tensor.pb.h"
#include "proto/codec/wire.hpp"

namespace pipewright {

namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedOutputStream;
using Field = v1::TensorMessage;

static_assert(std::endian::native == std::endian::little, "payloads are little-endian");

constexpr std::string_view message_name = "TensorMessage";
constexpr std::size_t message_bytes_max = std::numeric_limits<std::int32_t>::max();  // protobuf's

constexpr std::uint32_t varint_tag(int field) {
  return static_cast<std::uint32_t>(field) << 3 | WireFormatLite::WIRETYPE_VARINT;
}
constexpr std::uint32_t bytes_tag(int field) {
  return static_cast<std::uint32_t>(field) << 3 | WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
}

/// A field number below 16 and a wire type make one byte.
std::uint8_t* write_number(int field, std::uint64_t value, std::uint8_t* out) {
  if (value == 0) return out;  // proto3: zero is not written
  *out++ = static_cast<std::uint8_t>(varint_tag(field));
  return CodedOutputStream::WriteVarint64ToArray(value, out);
}

std::uint64_t unsigned_of(std::int64_t value, const char* what) {
  PW_CHECK(value >= 0, "a message with " << what << " " << value);
  return static_cast<std::uint64_t>(value);
}

std::uint8_t* write_shape(const Shape& shape, std::uint8_t* out) {
  if (shape.rank == 0) return out;
  *out++ = static_cast<std::uint8_t>(bytes_tag(Field::kShapeFieldNumber));
  std::uint8_t* const length = out++;  // four sizes of at most five bytes: one byte of length
  for (int i = 0; i < shape.rank; ++i) {
    const std::int64_t size = shape.dims[static_cast<std::size_t>(i)];
    PW_CHECK(size >= 0 && size <= std::numeric_limits<std::uint32_t>::max(),
             "a message of shape " << shape.text());
    out = CodedOutputStream::WriteVarint32ToArray(static_cast<std::uint32_t>(size), out);
  }
  *length = static_cast<std::uint8_t>(out - length - 1);
  return out;
}

std::uint8_t* write_fields(const Message& message, std::uint8_t* out) {
  const auto number = [&](int field, std::int64_t value, const char* what) {
    out = write_number(field, unsigned_of(value, what), out);
  };
  number(Field::kKindFieldNumber, static_cast<std::int64_t>(message.kind), "kind");
  number(Field::kStageFieldNumber, message.from_stage.value, "stage");
  number(Field::kToRowFieldNumber, message.to_row.value, "row");
  number(Field::kMicrobatchFieldNumber, message.microbatch.value, "microbatch");
  number(Field::kReplicaFieldNumber, message.replica.value, "replica");
  number(Field::kWeightVersionFieldNumber, message.weight_version.value, "weight version");
  number(Field::kSendTickFieldNumber, message.sent.value, "send tick");
  number(Field::kArrivalTickFieldNumber, message.arrival.value, "arrival tick");
  out = write_shape(message.tensor.shape(), out);
  number(Field::kTypeFieldNumber, static_cast<std::int64_t>(message.tensor.dtype()), "type");
  return out;
}

}  // namespace

std::span<const std::byte> encode_tensor_message(Message& message) {
  Buffer& payload = message.tensor.buffer();
  PW_CHECK(!message.tensor.empty(), "a message without a tensor");
  PW_CHECK(payload.size() <= message_bytes_max - tensor_header_bytes,
           "a message of " << payload.size() << " bytes");
  std::byte* const begin = payload.data() - tensor_header_bytes;
  auto* const header = reinterpret_cast<std::uint8_t*>(begin);
  std::uint8_t* out = write_fields(message, header);

  // The fields take at most 88 bytes, so the padding's length always takes two.
  const auto payload_bytes = static_cast<std::uint32_t>(payload.size());
  const std::size_t tail = 1 + CodedOutputStream::VarintSize32(payload_bytes);
  const std::size_t padding =
      tensor_header_bytes - static_cast<std::size_t>(out - header) - 3 - tail;
  *out++ = static_cast<std::uint8_t>(bytes_tag(Field::kPaddingFieldNumber));
  out = CodedOutputStream::WriteVarint32ToArray(static_cast<std::uint32_t>(padding), out);
  std::memset(out, 0, padding);
  out += padding;
  *out++ = static_cast<std::uint8_t>(bytes_tag(Field::kPayloadFieldNumber));
  out = CodedOutputStream::WriteVarint32ToArray(payload_bytes, out);
  PW_CHECK(out == header + tensor_header_bytes, "a header of " << (out - header) << " bytes");
  return {begin, tensor_header_bytes + payload.size()};
}

std::span<std::byte> receive_space(Buffer& payload, std::size_t bytes) {
  if (bytes < tensor_header_bytes) {
    wire::refuse(message_name, std::to_string(bytes) + " bytes are less than the header's " +
                                   std::to_string(tensor_header_bytes));
  }
  payload.resize(bytes - tensor_header_bytes);
  return {payload.data() - tensor_header_bytes, bytes};
}

namespace {

/// Reads the fields in front of the payload. Not by protobuf's CodedInputStream, which was a
/// quarter slower for nothing: all 256 bytes of a header are there.
class HeaderReader {
 public:
  HeaderReader(const std::byte* header, std::size_t payload_bytes)
      : begin_(reinterpret_cast<const std::uint8_t*>(header)),
        at_(begin_),
        end_(begin_ + tensor_header_bytes),
        payload_bytes_(payload_bytes) {}

  void read() {
    while (at_ != end_) {
      const std::uint64_t tag = number();
      if (tag == bytes_tag(Field::kPayloadFieldNumber)) return end_at_payload();
      read_field(tag);
    }
    wire::refuse(message_name, "its first 256 bytes do not end in front of a payload");
  }

  Message message;
  Shape shape;
  DType dtype{};

 private:
  void end_at_payload() {
    const std::uint64_t length = number();
    if (at_ != end_ || length != payload_bytes_) {
      wire::refuse(message_name, "a payload of " + std::to_string(length) + " bytes at byte " +
                                     std::to_string(at_ - begin_) + ", but " +
                                     std::to_string(payload_bytes_) + " bytes came after byte 256");
    }
  }

  void read_field(std::uint64_t tag) {
    switch (tag) {
      case varint_tag(Field::kKindFieldNumber):
        message.kind = kind();
        break;
      case varint_tag(Field::kStageFieldNumber):
        message.from_stage = Stage(small());
        break;
      case varint_tag(Field::kToRowFieldNumber):
        message.to_row = Row(small());
        break;
      case varint_tag(Field::kMicrobatchFieldNumber):
        message.microbatch = Microbatch(large());
        break;
      case varint_tag(Field::kReplicaFieldNumber):
        message.replica = Replica(small());
        break;
      case varint_tag(Field::kWeightVersionFieldNumber):
        message.weight_version = WeightVersion(large());
        break;
      case varint_tag(Field::kSendTickFieldNumber):
        message.sent = Tick(large());
        break;
      case varint_tag(Field::kArrivalTickFieldNumber):
        message.arrival = Tick(large());
        break;
      case varint_tag(Field::kShapeFieldNumber):
        add_size();
        break;
      case bytes_tag(Field::kShapeFieldNumber):
        read_shape();
        break;
      case varint_tag(Field::kTypeFieldNumber):
        dtype = type();
        break;
      default:
        skip_field(tag);
    }
  }

  [[noreturn]] void malformed() {
    wire::refuse(message_name,
                 "malformed at byte " + std::to_string(at_ - begin_) + " of its header");
  }

  /// A varint: seven bits per byte, the lowest first.
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == end_) malformed();
      const std::uint8_t byte = *at_++;
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    malformed();
  }

  std::int64_t at_most(std::uint64_t maximum) {
    const std::uint64_t value = number();
    if (value > maximum) malformed();
    return static_cast<std::int64_t>(value);
  }
  std::int64_t large() { return at_most(std::numeric_limits<std::int64_t>::max()); }
  std::int32_t small() {
    return static_cast<std::int32_t>(at_most(std::numeric_limits<std::int32_t>::max()));
  }
  MessageKind kind() { return static_cast<MessageKind>(at_most(11)); }
  DType type() { return static_cast<DType>(at_most(2)); }

  /// The padding, or a field that this version does not know.
  void skip_field(std::uint64_t tag) {
    switch (static_cast<WireFormatLite::WireType>(tag & 7)) {
      case WireFormatLite::WIRETYPE_VARINT:
        number();
        break;
      case WireFormatLite::WIRETYPE_FIXED64:
        skip(8);
        break;
      case WireFormatLite::WIRETYPE_FIXED32:
        skip(4);
        break;
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
        skip(number());
        break;
      default:
        malformed();  // groups are not written since proto3
    }
  }

  void skip(std::uint64_t bytes) {
    if (bytes > static_cast<std::uint64_t>(end_ - at_)) malformed();
    at_ += bytes;
  }

  void add_size() {
    if (shape.rank == static_cast<int>(shape.dims.size())) {
      wire::refuse(message_name, "a shape of more than four dimensions");
    }
    shape.dims[static_cast<std::size_t>(shape.rank++)] =
        at_most(std::numeric_limits<std::uint32_t>::max());
  }

  void read_shape() {
    const std::uint64_t bytes = number();
    const std::uint8_t* const start = at_;
    skip(bytes);
    const std::uint8_t* const stop = std::exchange(at_, start);
    while (at_ < stop) add_size();
    if (at_ != stop) malformed();
  }

  const std::uint8_t* begin_;
  const std::uint8_t* at_;
  const std::uint8_t* end_;
  std::size_t payload_bytes_;
};

void check_payload(const HeaderReader& header, std::size_t payload_bytes) {
  if (header.message.kind < MessageKind::activation) wire::refuse(message_name, "kind is missing");
  if (header.dtype < DType::float32) wire::refuse(message_name, "type is missing");
  std::size_t bytes = header.shape.rank == 0 ? 0 : size_of(header.dtype);
  bool fits = true;
  for (int i = 0; i < header.shape.rank; ++i) {
    fits =
        fits && !__builtin_mul_overflow(
                    bytes, static_cast<std::size_t>(header.shape.dims[static_cast<std::size_t>(i)]),
                    &bytes);
  }
  if (!fits || bytes != payload_bytes) {
    wire::refuse(message_name, "a payload of " + std::to_string(payload_bytes) +
                                   " bytes for the shape " + header.shape.text() + " of " +
                                   std::string(name_of(header.dtype)));
  }
}

}  // namespace

Message decode_tensor_message(Buffer payload) {
  HeaderReader header(payload.data() - tensor_header_bytes, payload.size());
  header.read();
  check_payload(header, payload.size());
  header.message.tensor = Tensor(header.dtype, header.shape, std::move(payload));
  return std::move(header.message);
}

}  // namespace pipewright
