// Tensor: numbers in storage of our own, aligned to 64 bytes, because what a vector kernel adds
// first depends on alignment, and runs must give the same bytes everywhere. In front of the numbers
// lies free room for the header of a message, so that a tensor can be sent from where it is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/check.hpp"

namespace pipewright {

using Index = std::ptrdiff_t;  // as Eigen has it

enum class DType : std::uint8_t { float32 = 1, float64 = 2 };
std::size_t size_of(DType dtype);
std::string_view name_of(DType dtype);

template <class T>
constexpr DType dtype_of = std::is_same_v<T, float> ? DType::float32 : DType::float64;

/// Up to four dimensions; the product is the number of elements. A default Shape has none of them.
struct Shape {
  std::array<std::int64_t, 4> dims{};
  int rank = 0;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> sizes);
  std::int64_t elements() const;
  std::string text() const;  // "[16, 32, 64]"
  friend bool operator==(const Shape&, const Shape&) = default;
};

/// Owned bytes at a 64-byte boundary with `headroom` free bytes in front. Move-only. Freed storage
/// is kept per thread and size class and used again, so that a steady pipeline does not allocate.
class Buffer {
 public:
  static constexpr std::size_t alignment = 64;
  static constexpr std::size_t headroom = 256;

  Buffer() = default;
  explicit Buffer(std::size_t bytes);
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    if (this == &other) return *this;
    if (data_ != nullptr) free();
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, 0);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) free();
  }

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  /// Makes the buffer `bytes` long; contents are lost unless it only shrinks.
  void resize(std::size_t bytes);

  /// Storage that was taken from the system, not from what had been freed (in this thread): a test
  /// counts these.
  static std::int64_t system_allocations();

 private:
  void free();

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

class Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype, Shape shape);  // contents undefined
  /// Takes over storage that holds the numbers already; it must have the length they need.
  Tensor(DType dtype, Shape shape, Buffer buffer);
  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(Tensor&&) noexcept = default;

  static Tensor zeros(DType dtype, Shape shape);
  Tensor clone() const;

  /// True for a default or moved-from tensor; a tensor of no elements is not empty.
  bool empty() const { return buffer_.data() == nullptr; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::int64_t elements() const { return shape_.elements(); }
  std::size_t bytes() const { return buffer_.size(); }
  Buffer& buffer() { return buffer_; }
  const Buffer& buffer() const { return buffer_; }

  template <class T>
  T* data() {
    PW_CHECK(dtype_of<T> == dtype_, "tensor of " << name_of(dtype_) << " read as another type");
    return reinterpret_cast<T*>(buffer_.data());
  }
  template <class T>
  const T* data() const {
    return const_cast<Tensor*>(this)->data<T>();
  }

 private:
  DType dtype_ = DType::float64;
  Shape shape_;
  Buffer buffer_;
};

}  // namespace pipewright
