#include "proto/codec/json_schema.hpp"

#include <google/protobuf/descriptor.h>

#include "core/base/check.hpp"
#include "pipewright/v1/job.pb.h"
#include "pipewright/v1/token.pb.h"

namespace pipewright {
namespace {

namespace pb = google::protobuf;

Value type_of(std::string_view name) {
  return Value(Value::Map{{"type", name}});
}

Value text_with_format(std::string_view format) {
  return Value(Value::Map{{"type", "string"}, {"format", format}});
}

/// Protobuf's JSON form writes numbers of 64 bits and what is no number as text.
Value real() {
  const Value special(Value::Map{{"enum", Value(Value::List{"NaN", "Infinity", "-Infinity"})}});
  return Value(Value::Map{{"anyOf", Value(Value::List{type_of("number"), special})}});
}

Value names_of(const pb::EnumDescriptor& kind) {
  Value names = Value::list();
  for (int i = 0; i < kind.value_count(); ++i) names.as_list().push_back(kind.value(i)->name());
  return Value(Value::Map{{"type", "string"}, {"enum", names}});
}

class Schemas {
 public:
  void add(const pb::Descriptor& message) {
    if (all_.has(message.name())) return;
    all_.set(message.name(), Value::map());  // a message may contain itself
    Value properties = Value::map();
    for (int i = 0; i < message.field_count(); ++i) {
      const pb::FieldDescriptor& field = *message.field(i);
      Value schema = of(field);
      if (field.is_repeated()) schema = Value(Value::Map{{"type", "array"}, {"items", schema}});
      properties.set(field.name(), std::move(schema));
    }
    all_.set(message.name(), Value(Value::Map{{"type", "object"},
                                              {"properties", std::move(properties)},
                                              {"additionalProperties", false}}));
  }
  Value take() { return std::move(all_); }

 private:
  Value of(const pb::FieldDescriptor& field) {
    switch (field.cpp_type()) {
      case pb::FieldDescriptor::CPPTYPE_INT32:
      case pb::FieldDescriptor::CPPTYPE_UINT32:
        return type_of("integer");
      case pb::FieldDescriptor::CPPTYPE_INT64:
        return text_with_format("int64");
      case pb::FieldDescriptor::CPPTYPE_UINT64:
        return text_with_format("uint64");
      case pb::FieldDescriptor::CPPTYPE_DOUBLE:
      case pb::FieldDescriptor::CPPTYPE_FLOAT:
        return real();
      case pb::FieldDescriptor::CPPTYPE_BOOL:
        return type_of("boolean");
      case pb::FieldDescriptor::CPPTYPE_ENUM:
        return names_of(*field.enum_type());
      case pb::FieldDescriptor::CPPTYPE_STRING:
        return field.type() == pb::FieldDescriptor::TYPE_BYTES ? text_with_format("byte")
                                                               : type_of("string");
      case pb::FieldDescriptor::CPPTYPE_MESSAGE:
        break;
    }
    return of(*field.message_type());
  }

  Value of(const pb::Descriptor& message) {
    if (message.full_name() == "google.protobuf.Struct") return type_of("object");
    if (message.full_name() == "google.protobuf.Value") return Value::map();  // anything
    add(message);
    return Value(Value::Map{{"$ref", "#/components/schemas/" + message.name()}});
  }

  Value all_ = Value::map();
};

}  // namespace

Value json_schemas(std::span<const std::string_view> messages) {
  // The files of these are known to the pool from here on.
  static_cast<void>(v1::Job::descriptor());
  static_cast<void>(v1::TokenInfo::descriptor());
  Schemas schemas;
  for (const std::string_view name : messages) {
    const auto* message = pb::DescriptorPool::generated_pool()->FindMessageTypeByName(
        "pipewright.v1." + std::string(name));
    PW_CHECK(message != nullptr, "no message " << name);
    schemas.add(*message);
  }
  return schemas.take();
}

}  // namespace pipewright
