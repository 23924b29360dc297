#include "core/base/value.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace pipewright {

std::string_view Value::type_name() const {
  static constexpr std::string_view names[] = {
      "nothing", "true or false", "a whole number", "a number", "text", "a list", "a map"};
  return names[data_.index()];
}

namespace {

[[noreturn]] void wrong_type(std::string_view wanted, const Value& got) {
  throw ConfigError("expected " + std::string(wanted) + ", found " + std::string(got.type_name()));
}

}  // namespace

bool Value::as_bool() const {
  if (const bool* v = std::get_if<bool>(&data_)) return *v;
  wrong_type("true or false", *this);
}

std::int64_t Value::as_integer() const {
  if (const auto* v = std::get_if<std::int64_t>(&data_)) return *v;
  wrong_type("a whole number", *this);
}

double Value::as_real() const {
  if (const double* v = std::get_if<double>(&data_)) return *v;
  if (const auto* v = std::get_if<std::int64_t>(&data_)) return static_cast<double>(*v);
  wrong_type("a number", *this);
}

const std::string& Value::as_text() const {
  if (const auto* v = std::get_if<std::string>(&data_)) return *v;
  wrong_type("text", *this);
}

const Value::List& Value::as_list() const {
  if (const List* v = std::get_if<List>(&data_)) return *v;
  wrong_type("a list", *this);
}

const Value::Map& Value::as_map() const {
  if (const Map* v = std::get_if<Map>(&data_)) return *v;
  wrong_type("a map", *this);
}

Value::List& Value::as_list() {
  return const_cast<List&>(std::as_const(*this).as_list());
}
Value::Map& Value::as_map() {
  return const_cast<Map&>(std::as_const(*this).as_map());
}

const Value* Value::find(std::string_view key) const {
  const Map* map = std::get_if<Map>(&data_);
  if (map == nullptr) return nullptr;
  const auto it = std::find_if(map->begin(), map->end(), [&](auto& e) { return e.first == key; });
  return it == map->end() ? nullptr : &it->second;
}

Value* Value::find(std::string_view key) {
  return const_cast<Value*>(std::as_const(*this).find(key));
}

const Value& Value::at(std::string_view key) const {
  if (const Value* v = find(key)) return *v;
  throw ConfigError("'" + std::string(key) + "' is missing");
}

Value& Value::set(std::string_view key, Value value) {
  if (is_null()) data_ = Map{};
  if (Value* existing = find(key)) return *existing = std::move(value);
  return as_map().emplace_back(std::string(key), std::move(value)).second;
}

namespace {

void write_text(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        // 0x7f too: JSON would allow it, YAML does not, and what is written is read as either.
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          char escape[8];
          std::snprintf(escape, sizeof escape, "\\u%04x", c);
          out += escape;
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

void new_line(std::string& out, int indent, int depth) {
  if (indent < 0) return;
  out += '\n';
  out.append(static_cast<std::size_t>(indent) * static_cast<std::size_t>(depth), ' ');
}

void write_json(std::string& out, const Value& value, int indent, int depth) {
  if (value.is_bool()) {
    out += value.as_bool() ? "true" : "false";
  } else if (value.is_integer()) {
    append_number(out, value.as_integer());
  } else if (value.is_real()) {
    if (std::isfinite(value.as_real())) {
      append_number(out, value.as_real());
    } else {
      out += "null";
    }
  } else if (value.is_text()) {
    write_text(out, value.as_text());
  } else if (value.is_list() || value.is_map()) {
    const bool is_list = value.is_list();
    const std::size_t size = is_list ? value.as_list().size() : value.as_map().size();
    // A list of plain values stays on one line: histograms would fill screens otherwise.
    const bool flat = is_list && std::none_of(value.as_list().begin(), value.as_list().end(),
                                              [](auto& v) { return v.is_list() || v.is_map(); });
    const int inner = flat ? -1 : indent;
    out += is_list ? '[' : '{';
    for (std::size_t i = 0; i < size; ++i) {
      if (i > 0) out += inner < 0 && indent >= 0 ? ", " : ",";
      new_line(out, inner, depth + 1);
      if (is_list) {
        write_json(out, value.as_list()[i], indent, depth + 1);
      } else {
        write_text(out, value.as_map()[i].first);
        out += indent < 0 ? ":" : ": ";
        write_json(out, value.as_map()[i].second, indent, depth + 1);
      }
    }
    if (size > 0) new_line(out, inner, depth);
    out += is_list ? ']' : '}';
  } else {
    out += "null";
  }
}

}  // namespace

std::string to_json(const Value& value, int indent) {
  std::string out;
  write_json(out, value, indent, 0);
  return out;
}

void set_path(Value& root, std::string_view path, Value value) {
  Value* at = &root;
  const auto parts = split(path, '.');
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    if (at->is_null()) *at = Value::map();
    if (!at->is_map()) {
      throw ParamError(std::string(path), "'" + std::string(parts[i - 1]) + "' is " +
                                              std::string(at->type_name()) + ", not a map");
    }
    Value* next = at->find(parts[i]);
    at = next != nullptr ? next : &at->set(parts[i], Value::map());
  }
  if (!at->is_map() && !at->is_null()) {
    throw ParamError(std::string(path),
                     "its parent is " + std::string(at->type_name()) + ", not a map");
  }
  at->set(parts.back(), std::move(value));
}

const Value* find_path(const Value& root, std::string_view path) {
  const Value* at = &root;
  for (const std::string_view part : split(path, '.')) {
    at = at->find(part);
    if (at == nullptr) return nullptr;
  }
  return at;
}

}  // namespace pipewright
