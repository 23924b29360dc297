#include "proto/codec/wire.hpp"

#include <algorithm>
#include <limits>
#include <memory>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/type_resolver.h>
#include <google/protobuf/util/type_resolver_util.h>

namespace pipewright::wire {

namespace {

namespace pb = google::protobuf;

constexpr int json_depth_max = 64;
constexpr const char* type_prefix = "type.googleapis.com";

pb::util::TypeResolver& types() {
  static const std::unique_ptr<pb::util::TypeResolver> resolver(
      pb::util::NewTypeResolverForDescriptorPool(type_prefix,
                                                 pb::DescriptorPool::generated_pool()));
  return *resolver;
}

std::string binary(const pb::Message& message) {
  std::string bytes;
  {
    pb::io::StringOutputStream stream(&bytes);
    pb::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);  // maps in the order of their keys
    message.SerializeToCodedStream(&coded);
  }
  return bytes;
}

/// What protobuf would print to standard error about bytes from outside goes into our errors.
void silence_protobuf_log() {
  static const auto before = pb::SetLogHandler(nullptr);
  static_cast<void>(before);
}

/// How deep brackets are nested outside of strings.
int json_depth(std::string_view json) {
  int depth = 0;
  int deepest = 0;
  char quote = '\0';
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (quote != '\0') {
      if (c == '\\') {
        ++i;
      } else if (c == quote) {
        quote = '\0';
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

void refuse(std::string_view message_name, const std::string& why) {
  throw ProtocolError("not a valid " + std::string(message_name) + ": " + why);
}

std::string serialize(const pb::Message& message, WireFormat format) {
  if (format == WireFormat::protobuf) return binary(message);
  pb::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  const auto status = pb::util::BinaryToJsonString(
      &types(), std::string(type_prefix) + "/" + message.GetDescriptor()->full_name(),
      binary(message), &json, options);
  if (!status.ok()) refuse(message.GetDescriptor()->name(), status.ToString());
  return json;
}

void parse(std::string_view bytes, WireFormat format, pb::Message& message) {
  silence_protobuf_log();
  const std::string& name = message.GetDescriptor()->name();
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    refuse(name, std::to_string(bytes.size()) + " bytes are more than a message may have (2 GiB)");
  }
  if (format == WireFormat::protobuf) {
    if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      refuse(name, std::to_string(bytes.size()) + " bytes that are not protobuf of this message");
    }
    return;
  }
  if (const std::size_t bad = find_invalid_utf8(bytes); bad != std::string_view::npos) {
    refuse(name, "byte " + std::to_string(bad) + " of the JSON text is not UTF-8");
  }
  // protobuf's own limit comes too late: its time grows with the square of the depth.
  if (json_depth(bytes) > json_depth_max) {
    refuse(name, "it is nested deeper than " + std::to_string(json_depth_max));
  }
  const auto status = pb::util::JsonStringToMessage(pb::StringPiece(bytes.data(), bytes.size()),
                                                    &message, pb::util::JsonParseOptions());
  if (!status.ok()) refuse(name, status.message().as_string());
}

std::int64_t count_from(std::uint64_t number, std::string_view message_name,
                        std::string_view field) {
  if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    refuse(message_name, std::string(field) + " is too large: " + std::to_string(number));
  }
  return static_cast<std::int64_t>(number);
}

}  // namespace pipewright::wire
