// Value: a tree of plain data (what a YAML or JSON text holds). Jobs, plug-in parameters and
// summaries are Values; params.hpp says which trees are valid. Maps keep the order in which keys
// were set.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace pipewright {

class Value {
 public:
  using List = std::vector<Value>;
  using Map = std::vector<std::pair<std::string, Value>>;

  Value() = default;
  Value(bool v) : data_(v) {}                            // NOLINT: a Value is any of these
  Value(int v) : data_(static_cast<std::int64_t>(v)) {}  // NOLINT
  Value(std::int64_t v) : data_(v) {}                    // NOLINT
  Value(double v) : data_(v) {}                          // NOLINT
  Value(const char* v) : data_(std::string(v)) {}        // NOLINT
  Value(std::string v) : data_(std::move(v)) {}          // NOLINT
  Value(std::string_view v) : data_(std::string(v)) {}   // NOLINT
  Value(List v) : data_(std::move(v)) {}                 // NOLINT
  Value(Map v) : data_(std::move(v)) {}                  // NOLINT
  static Value map() { return Value(Map{}); }
  static Value list() { return Value(List{}); }

  bool is_null() const { return std::holds_alternative<std::monostate>(data_); }
  bool is_bool() const { return std::holds_alternative<bool>(data_); }
  bool is_integer() const { return std::holds_alternative<std::int64_t>(data_); }
  bool is_real() const { return std::holds_alternative<double>(data_); }
  bool is_number() const { return is_integer() || is_real(); }
  bool is_text() const { return std::holds_alternative<std::string>(data_); }
  bool is_list() const { return std::holds_alternative<List>(data_); }
  bool is_map() const { return std::holds_alternative<Map>(data_); }
  /// "a number", "a list", ...: for messages.
  std::string_view type_name() const;

  // Each of these throws ConfigError when the value is of another type.
  bool as_bool() const;
  std::int64_t as_integer() const;
  double as_real() const;  // integers too
  const std::string& as_text() const;
  const List& as_list() const;
  List& as_list();
  const Map& as_map() const;
  Map& as_map();

  /// The value under `key`, or null. A value that is not a map has no keys.
  const Value* find(std::string_view key) const;
  Value* find(std::string_view key);
  /// The value under `key`; throws ConfigError when it is not there.
  const Value& at(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  /// Sets or replaces `key`. A null value becomes a map first.
  Value& set(std::string_view key, Value value);

  friend bool operator==(const Value&, const Value&) = default;

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Map> data_;
};

/// JSON text. Reals as the shortest decimals that read back; a non-finite number becomes null.
/// `indent` < 0 gives one line.
std::string to_json(const Value& value, int indent = 2);

/// Sets a dotted path ("optimizer.sgd.learning_rate"), making the maps on the way. Throws
/// ConfigError when a part of the path exists and is not a map.
void set_path(Value& root, std::string_view path, Value value);
/// The value at a dotted path, or null.
const Value* find_path(const Value& root, std::string_view path);

}  // namespace pipewright
