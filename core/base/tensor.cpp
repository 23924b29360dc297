#include "core/base/tensor.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <vector>

namespace pipewright {

std::size_t size_of(DType dtype) {
  return dtype == DType::float32 ? 4 : 8;
}
std::string_view name_of(DType dtype) {
  return dtype == DType::float32 ? "float32" : "float64";
}

Shape::Shape(std::initializer_list<std::int64_t> sizes) {
  PW_CHECK(sizes.size() <= dims.size(), "a shape of " << sizes.size() << " dimensions");
  for (const std::int64_t size : sizes) dims[static_cast<std::size_t>(rank++)] = size;
}

std::int64_t Shape::elements() const {
  if (rank == 0) return 0;
  std::int64_t product = 1;
  for (int i = 0; i < rank; ++i) product *= dims[static_cast<std::size_t>(i)];
  return product;
}

std::string Shape::text() const {
  std::string out = "[";
  for (int i = 0; i < rank; ++i) {
    if (i > 0) out += ", ";
    out += std::to_string(dims[static_cast<std::size_t>(i)]);
  }
  return out + "]";
}

namespace {

/// Freed storage by power of two. Bounded, so a burst does not stay in memory for ever.
class FreeList {
 public:
  ~FreeList() {
    for (auto& blocks : classes_) {
      for (std::byte* block : blocks) release(block);
    }
  }

  std::byte* take(std::size_t capacity) {
    auto& blocks = classes_[static_cast<std::size_t>(std::countr_zero(capacity))];
    if (!blocks.empty()) {
      std::byte* block = blocks.back();
      blocks.pop_back();
      return block;
    }
    ++system_allocations;
    void* raw = ::operator new(Buffer::headroom + capacity, std::align_val_t(Buffer::alignment));
    return static_cast<std::byte*>(raw) + Buffer::headroom;
  }

  void give(std::byte* block, std::size_t capacity) {
    static constexpr std::size_t bytes_kept_per_class = std::size_t{64} << 20;
    auto& blocks = classes_[static_cast<std::size_t>(std::countr_zero(capacity))];
    if ((blocks.size() + 1) * capacity > bytes_kept_per_class) {
      release(block);
    } else {
      blocks.push_back(block);
    }
  }

  std::int64_t system_allocations = 0;

 private:
  static void release(std::byte* block) {
    ::operator delete(block - Buffer::headroom, std::align_val_t(Buffer::alignment));
  }

  std::array<std::vector<std::byte*>, 65> classes_;  // countr_zero of 64 bits: 0..64
};

FreeList& free_list() {
  thread_local FreeList list;
  return list;
}

std::size_t capacity_for(std::size_t bytes) {
  return std::bit_ceil(std::max(bytes, Buffer::alignment));
}

}  // namespace

Buffer::Buffer(std::size_t bytes)
    : data_(free_list().take(capacity_for(bytes))), size_(bytes), capacity_(capacity_for(bytes)) {}

void Buffer::free() {
  free_list().give(data_, capacity_);
}

void Buffer::resize(std::size_t bytes) {
  if (bytes > capacity_ || data_ == nullptr) *this = Buffer(bytes);
  size_ = bytes;
}

std::int64_t Buffer::system_allocations() {
  return free_list().system_allocations;
}

Tensor::Tensor(DType dtype, Shape shape)
    : dtype_(dtype),
      shape_(shape),
      buffer_(static_cast<std::size_t>(shape.elements()) * size_of(dtype)) {}

Tensor::Tensor(DType dtype, Shape shape, Buffer buffer)
    : dtype_(dtype), shape_(shape), buffer_(std::move(buffer)) {
  PW_CHECK(!empty() && bytes() == static_cast<std::size_t>(elements()) * size_of(dtype),
           "storage of " << bytes() << " bytes for a tensor " << shape_.text() << " of "
                         << name_of(dtype));
}

Tensor Tensor::zeros(DType dtype, Shape shape) {
  Tensor tensor(dtype, shape);
  if (tensor.bytes() > 0) std::memset(tensor.buffer_.data(), 0, tensor.bytes());
  return tensor;
}

Tensor Tensor::clone() const {
  if (empty()) return {};
  Tensor copy(dtype_, shape_);
  if (bytes() > 0) std::memcpy(copy.buffer_.data(), buffer_.data(), bytes());
  return copy;
}

}  // namespace pipewright
