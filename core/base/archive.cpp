#include "core/base/archive.hpp"

#include <cstring>

#include "core/base/error.hpp"

namespace pipewright {

void Archive::bytes(void* data, std::size_t count) {
  if (count == 0) return;
  if (!reads()) {
    out_->append(static_cast<const char*>(data), count);
    return;
  }
  if (in_.size() < count) throw DataError("stored state ends too early");
  std::memcpy(data, in_.data(), count);
  in_.remove_prefix(count);
}

std::size_t Archive::size(std::size_t count, std::size_t bytes_each) {
  auto stored = static_cast<std::uint64_t>(count);
  (*this)(stored);
  if (reads() && stored > in_.size() / bytes_each) {
    throw DataError("stored state names " + std::to_string(stored) +
                    " elements and ends before that");
  }
  return static_cast<std::size_t>(stored);
}

void Archive::operator()(std::string& text) {
  text.resize(size(text.size(), 1));
  bytes(text.data(), text.size());
}

void Archive::operator()(Tensor& tensor) {
  std::uint8_t type = tensor.empty() ? 0 : static_cast<std::uint8_t>(tensor.dtype());
  (*this)(type);
  if (reads() && type == 0) tensor = {};
  if (type == 0) return;
  Shape shape = tensor.shape();
  (*this)(shape.rank);
  const auto dtype = static_cast<DType>(type);
  if ((dtype != DType::float32 && dtype != DType::float64) || shape.rank < 0 ||
      shape.rank > static_cast<int>(shape.dims.size())) {
    throw DataError("stored state holds a tensor of no known type");
  }
  std::uint64_t elements = 1;
  for (int i = 0; i < shape.rank; ++i) {
    std::int64_t& size = shape.dims[static_cast<std::size_t>(i)];
    (*this)(size);
    if (reads() &&
        (size < 0 || (size > 0 && elements > in_.size() / static_cast<std::uint64_t>(size)))) {
      throw DataError("stored state ends within a tensor");
    }
    elements *= static_cast<std::uint64_t>(size);
  }
  if (reads()) {
    if (elements * size_of(dtype) > in_.size()) {
      throw DataError("stored state ends within a tensor");
    }
    tensor = Tensor(dtype, shape);
  }
  bytes(tensor.buffer().data(), tensor.bytes());
}

}  // namespace pipewright
