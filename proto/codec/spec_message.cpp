#include "proto/codec/spec_message.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/base/utf8.hpp"
#include "proto/codec/limits.hpp"
#include "proto/codec/wire.hpp"

namespace pipewright {

namespace {

namespace pb = google::protobuf;

constexpr double exact_below = 9007199254740992.0;  // 2^53

void put_struct(const Value::Map& map, pb::Struct& out, int depth);

void put_value(const Value& value, pb::Value& out, int depth) {
  if (depth > value_depth_max) {
    throw ConfigError("maps and lists may be nested " + std::to_string(value_depth_max) + " deep");
  }
  if (value.is_null()) {
    out.set_null_value(pb::NULL_VALUE);
  } else if (value.is_bool()) {
    out.set_bool_value(value.as_bool());
  } else if (value.is_number()) {
    const double number = value.as_real();
    if (value.is_integer() && !(std::abs(number) < exact_below)) {
      throw ConfigError(std::to_string(value.as_integer()) +
                        " is too large: whole numbers of a job must be below 2^53");
    }
    out.set_number_value(number);
  } else if (value.is_text()) {
    out.set_string_value(clean_utf8(value.as_text()));
  } else if (value.is_list()) {
    pb::ListValue& list = *out.mutable_list_value();
    for (const Value& element : value.as_list()) put_value(element, *list.add_values(), depth + 1);
  } else {
    put_struct(value.as_map(), *out.mutable_struct_value(), depth);
  }
}

void put_struct(const Value::Map& map, pb::Struct& out, int depth) {
  for (const auto& [key, value] : map) {
    put_value(value, (*out.mutable_fields())[clean_utf8(key)], depth + 1);
  }
}

Value get_struct(const pb::Struct& message, int depth);

Value get_value(const pb::Value& message, int depth) {
  if (depth > value_depth_max) {
    wire::refuse("JobSpec", "it is nested deeper than " + std::to_string(value_depth_max));
  }
  switch (message.kind_case()) {
    case pb::Value::kBoolValue:
      return message.bool_value();
    case pb::Value::kNumberValue: {
      const double number = message.number_value();
      const bool whole = std::abs(number) < exact_below && number == std::floor(number);
      return whole ? Value(static_cast<std::int64_t>(number)) : Value(number);
    }
    case pb::Value::kStringValue:
      return message.string_value();
    case pb::Value::kStructValue:
      return get_struct(message.struct_value(), depth);
    case pb::Value::kListValue: {
      Value::List list;
      for (const pb::Value& element : message.list_value().values()) {
        list.push_back(get_value(element, depth + 1));
      }
      return list;
    }
    default:
      return {};
  }
}

Value get_struct(const pb::Struct& message, int depth) {
  Value::Map map;
  for (const auto& [key, value] : message.fields())
    map.emplace_back(key, get_value(value, depth + 1));
  std::sort(map.begin(), map.end(), [](auto& a, auto& b) { return a.first < b.first; });
  return map;
}

/// "kind" or {kind: {...}}; false for anything else.
bool put_plugin(const Value& value, v1::Plugin& (*field)(v1::JobSpec&), v1::JobSpec& message) {
  if (value.is_text() && !value.as_text().empty()) {
    field(message).set_kind(clean_utf8(value.as_text()));
    return true;
  }
  if (!value.is_map() || value.as_map().size() != 1) return false;
  const auto& [kind, parameters] = value.as_map().front();
  if (kind.empty() || !(parameters.is_map() || parameters.is_null())) return false;
  v1::Plugin& plugin = field(message);
  plugin.set_kind(clean_utf8(kind));
  if (parameters.is_map()) put_struct(parameters.as_map(), *plugin.mutable_parameters(), 1);
  return true;
}

bool put_map(const Value& value, pb::Struct& (*field)(v1::JobSpec&), v1::JobSpec& message) {
  if (value.is_map()) put_struct(value.as_map(), field(message), 1);
  return value.is_map();
}

/// Gives false when `key` has no field of its own, or the field cannot hold the value.
bool put_field(std::string_view key, const Value& value, v1::JobSpec& message) {
  using Spec = v1::JobSpec;
  if (key == "name" && value.is_text()) return message.set_name(clean_utf8(value.as_text())), true;
  if (key == "clock" && value.is_text())
    return message.set_clock(clean_utf8(value.as_text())), true;
  if (key == "objective") {
    return put_plugin(
        value, [](Spec & s) -> auto& { return *s.mutable_objective(); }, message);
  }
  if (key == "schedule") {
    return put_plugin(
        value, [](Spec & s) -> auto& { return *s.mutable_schedule(); }, message);
  }
  if (key == "optimizer") {
    return put_plugin(
        value, [](Spec & s) -> auto& { return *s.mutable_optimizer(); }, message);
  }
  if (key == "init") return put_value(value, *message.mutable_init(), 1), true;
  if (key == "cost") {
    return put_map(
        value, [](Spec & s) -> auto& { return *s.mutable_cost(); }, message);
  }
  if (key == "link") {
    return put_map(
        value, [](Spec & s) -> auto& { return *s.mutable_link(); }, message);
  }
  if (key == "observe") {
    return put_map(
        value, [](Spec & s) -> auto& { return *s.mutable_observe(); }, message);
  }
  if (!value.is_integer() || value.as_integer() < 0) return false;
  if (key == "seed") {
    message.set_seed(static_cast<std::uint64_t>(value.as_integer()));
    return true;
  }
  if (key == "ranks" && value.as_integer() <= std::numeric_limits<std::uint32_t>::max()) {
    message.set_ranks(static_cast<std::uint32_t>(value.as_integer()));
    return true;
  }
  return false;
}

Value get_plugin(const v1::Plugin& plugin, std::string_view field) {
  if (plugin.kind().empty()) wire::refuse("JobSpec", std::string(field) + " has no kind");
  return Value(Value::Map{{plugin.kind(), get_struct(plugin.parameters(), 1)}});
}

}  // namespace

Value get(const pb::Value& message) {
  return get_value(message, 0);
}

void put(const Value::Map& keys, pb::RepeatedPtrField<v1::Swept>& message) {
  for (const auto& [path, value] : keys) {
    v1::Swept& swept = *message.Add();
    swept.set_path(clean_utf8(path));
    put_value(value, *swept.mutable_value(), 1);
  }
}

Value::Map get(const pb::RepeatedPtrField<v1::Swept>& message) {
  Value::Map keys;
  for (const v1::Swept& swept : message) {
    keys.emplace_back(swept.path(), get_value(swept.value(), 1));
  }
  return keys;
}

void put(const Value& tree, v1::JobSpec& message) {
  if (!tree.is_map()) {
    throw ConfigError("a job is a map of keys and values, not " + std::string(tree.type_name()));
  }
  for (const auto& [key, value] : tree.as_map()) {
    if (!put_field(key, value, message)) {
      put_value(value, (*message.mutable_more()->mutable_fields())[clean_utf8(key)], 1);
    }
  }
}

Value get(const v1::JobSpec& message) {
  Value tree = Value::map();
  // What proto3 cannot tell from "not given" (name, seed, ranks) is the default of a job too.
  tree.set("name", message.name());
  if (message.has_objective()) tree.set("objective", get_plugin(message.objective(), "objective"));
  if (message.has_init()) tree.set("init", get_value(message.init(), 1));
  if (message.has_schedule()) tree.set("schedule", get_plugin(message.schedule(), "schedule"));
  if (message.has_optimizer()) tree.set("optimizer", get_plugin(message.optimizer(), "optimizer"));
  if (message.has_cost()) tree.set("cost", get_struct(message.cost(), 1));
  if (message.has_link()) tree.set("link", get_struct(message.link(), 1));
  if (!message.clock().empty()) tree.set("clock", message.clock());
  if (message.has_observe()) tree.set("observe", get_struct(message.observe(), 1));
  tree.set("seed", wire::count_from(message.seed(), "JobSpec", "seed"));
  tree.set("ranks", static_cast<std::int64_t>(message.ranks()));
  const Value more = get_struct(message.more(), 0);
  for (const auto& [key, value] : more.as_map()) {
    const bool filled_in = (key == "name" && message.name().empty()) ||
                           (key == "seed" && message.seed() == 0) ||
                           (key == "ranks" && message.ranks() == 0);
    if (tree.has(key) && !filled_in) {
      wire::refuse("JobSpec", "'" + key + "' is given twice, once in 'more'");
    }
    tree.set(key, value);
  }
  return tree;
}

}  // namespace pipewright
