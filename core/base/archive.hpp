// State as bytes, and back: one function per type walks through its members and serves both ways,
// so that what is written and what is read cannot differ. Numbers are little-endian, as in the
// memory of every machine that this is built for.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/base/ids.hpp"
#include "core/base/tensor.hpp"

namespace pipewright {

static_assert(std::endian::native == std::endian::little);

class Archive {
 public:
  /// Writes, behind what `out` holds.
  explicit Archive(std::string& out) : out_(&out) {}
  /// Reads. Throws DataError where the bytes end too early or cannot be what was written.
  explicit Archive(std::string_view bytes) : in_(bytes) {}

  bool reads() const { return out_ == nullptr; }
  /// All has been read.
  bool at_end() const { return in_.empty(); }

  /// A number, a truth value or an enum. Of the latter two the reader must know which are right.
  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void operator()(T& value) {
    bytes(&value, sizeof value);
  }
  template <class Tag, class Rep>
  void operator()(StrongId<Tag, Rep>& id) {
    (*this)(id.value);
  }
  void operator()(Tick& tick) { (*this)(tick.value); }
  /// Type, shape and numbers; an empty one too.
  void operator()(Tensor& tensor);
  void operator()(std::string& text);

  /// How many follow, of at least `bytes_each` each.
  std::size_t size(std::size_t count, std::size_t bytes_each);
  /// Every element of a list; `walk(element)` serves both ways.
  template <class List, class Walk>
  void each(List& list, std::size_t bytes_each, Walk&& walk) {
    list.resize(size(list.size(), bytes_each));
    for (auto& element : list) walk(element);
  }
  template <class T>
  requires(std::is_arithmetic_v<T>) void numbers(std::vector<T>& list) {
    list.resize(size(list.size(), sizeof(T)));
    bytes(list.data(), list.size() * sizeof(T));
  }

 private:
  void bytes(void* data, std::size_t count);

  std::string* out_ = nullptr;
  std::string_view in_;
};

}  // namespace pipewright
