#include "core/data/npy.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/data/npy_header.hpp"

namespace pipewright {

static_assert(std::endian::native == std::endian::little, "NPY data is copied as it is");

namespace {

/// Whether `value` is the same number as a To.
template <class To, class From>
bool fits(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return true;
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // 2^63 is the first double above the range; the comparison also refuses nan.
    return value >= -0x1p63 && value < 0x1p63 && std::trunc(value) == value;
  } else if constexpr (std::is_floating_point_v<From>) {
    return !std::isfinite(value) || static_cast<From>(static_cast<To>(value)) == value;
  } else if constexpr (std::is_floating_point_v<To>) {
    const To converted = static_cast<To>(value);
    if constexpr (sizeof(From) < 8) {
      return static_cast<double>(converted) == static_cast<double>(value);
    } else {
      // A rounded integer may be 2^63 (2^64), which cannot be cast back.
      constexpr To limit = std::is_signed_v<From> ? To(0x1p63) : To(0x1p64);
      return converted < limit && static_cast<From>(converted) == value;
    }
  } else {
    return std::in_range<To>(value);
  }
}

template <class T>
std::string number_text(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::isnan(value) ? "nan" : format_number(static_cast<double>(value));
  } else {
    return std::to_string(value);
  }
}

template <class T>
constexpr const char* type_text = std::is_same_v<T, double>  ? "float64"
                                  : std::is_same_v<T, float> ? "float32"
                                                             : "int64";

/// Reads the numbers of one file.
template <class T>
class BodyReader {
 public:
  BodyReader(std::istream& stream, const std::string& name, const NpyOptions& options,
             const NpyHeader& header)
      : stream_(stream), name_(name), options_(options), header_(header) {}

  std::vector<T> read() {
    switch (header_.type) {
      case NpyType::f4:
        return read_as<float>();
      case NpyType::f8:
        return read_as<double>();
      case NpyType::i1:
        return read_as<std::int8_t>();
      case NpyType::i2:
        return read_as<std::int16_t>();
      case NpyType::i4:
        return read_as<std::int32_t>();
      case NpyType::i8:
        return read_as<std::int64_t>();
      case NpyType::u1:
        return read_as<std::uint8_t>();
      case NpyType::u2:
        return read_as<std::uint16_t>();
      case NpyType::u4:
        return read_as<std::uint32_t>();
      case NpyType::u8:
        return read_as<std::uint64_t>();
    }
    PW_CHECK(false, "NPY type " << static_cast<int>(header_.type));
  }

 private:
  /// In pieces: a header may claim any size, the stream has only what it has.
  template <class From>
  std::vector<T> read_as() {
    static constexpr std::int64_t piece_elements = 64 << 10;
    std::vector<From> piece(static_cast<std::size_t>(std::min(header_.elements, piece_elements)));
    std::vector<T> values;
    for (std::int64_t done = 0; done < header_.elements;) {
      const std::int64_t wanted = std::min(piece_elements, header_.elements - done);
      const auto wanted_bytes = wanted * static_cast<std::int64_t>(sizeof(From));
      stream_.read(reinterpret_cast<char*>(piece.data()), wanted_bytes);
      if (stream_.gcount() != wanted_bytes) fail_short(done, stream_.gcount());
      for (std::int64_t i = 0; i < wanted; ++i) {
        const From value = piece[static_cast<std::size_t>(i)];
        check(value, done + i);
        values.push_back(static_cast<T>(value));
      }
      done += wanted;
    }
    if (stream_.peek() != std::istream::traits_type::eof()) fail_long();
    return values;
  }

  template <class From>
  void check(From value, std::int64_t element) const {
    if constexpr (std::is_floating_point_v<From>) {
      if (options_.finite_only && !std::isfinite(value)) {
        throw DataError(place(element) + "is " + number_text(value) +
                        "; only finite numbers are right here");
      }
    }
    if (!fits<T>(value)) {
      throw DataError(place(element) + "is " + number_text(value) + " in " +
                      std::string(name_of(header_.type)) + ", which " + type_text<T> +
                      " cannot hold exactly");
    }
  }

  /// "X.npy: element [3, 1] (byte 152) ": indices as numpy counts them.
  std::string place(std::int64_t element) const {
    std::array<std::int64_t, 4> index{};
    std::int64_t rest = element;
    for (int i = 0; i < header_.shape.rank; ++i) {
      const int dim = header_.fortran_order ? i : header_.shape.rank - 1 - i;
      const std::int64_t size = header_.shape.dims[static_cast<std::size_t>(dim)];
      index[static_cast<std::size_t>(dim)] = rest % size;
      rest /= size;
    }
    std::string text = name_ + ": element [";
    for (int i = 0; i < header_.shape.rank; ++i) {
      text += (i > 0 ? ", " : "") + std::to_string(index[static_cast<std::size_t>(i)]);
    }
    return text + "] (byte " +
           std::to_string(header_.data_start + element * size_of(header_.type)) + ") ";
  }

  [[noreturn]] void fail_short(std::int64_t elements_read, std::int64_t bytes_after) const {
    const std::int64_t size = size_of(header_.type);
    throw DataError(name_ + ": shape " + npy_shape_text(header_.shape) + " of " +
                    std::string(name_of(header_.type)) + " needs " +
                    std::to_string(header_.elements * size) + " bytes from byte " +
                    std::to_string(header_.data_start) + ", the file ends at byte " +
                    std::to_string(header_.data_start + elements_read * size + bytes_after));
  }

  [[noreturn]] void fail_long() const {
    throw DataError(name_ + ": shape " + npy_shape_text(header_.shape) + " of " +
                    std::string(name_of(header_.type)) + " ends at byte " +
                    std::to_string(header_.data_start + header_.elements * size_of(header_.type)) +
                    ", the file goes on after it");
  }

  std::istream& stream_;
  const std::string& name_;
  const NpyOptions& options_;
  const NpyHeader& header_;
};

/// Column-major values (first index fastest) as row-major ones.
template <class T>
std::vector<T> transposed(const std::vector<T>& values, const Shape& shape) {
  std::array<std::int64_t, 4> stride{};  // of each dimension in `values`
  std::int64_t step = 1;
  for (int i = 0; i < shape.rank; ++i) {
    stride[static_cast<std::size_t>(i)] = step;
    step *= shape.dims[static_cast<std::size_t>(i)];
  }
  std::vector<T> out;
  out.reserve(values.size());
  std::array<std::int64_t, 4> index{};
  std::int64_t from = 0;
  while (out.size() < values.size()) {
    out.push_back(values[static_cast<std::size_t>(from)]);
    for (int i = shape.rank - 1; i >= 0; --i) {  // the next index in row-major order
      const auto dim = static_cast<std::size_t>(i);
      from += stride[dim];
      if (++index[dim] < shape.dims[dim]) break;
      from -= stride[dim] * shape.dims[dim];
      index[dim] = 0;
    }
  }
  return out;
}

template <class T>
void write_values(std::ostream& stream, std::span<const T> values) {
  static constexpr std::size_t alignment = 64;
  std::string header = "{'descr': '<f" + std::to_string(sizeof(T)) +
                       "', 'fortran_order': False, 'shape': (" + std::to_string(values.size()) +
                       ",), }";
  static constexpr std::string_view magic = "\x93NUMPY\x01";
  const std::size_t start = magic.size() + 3;  // a zero for the minor version, two bytes of length
  const std::size_t total = (start + header.size() + 1 + alignment - 1) / alignment * alignment;
  header.append(total - start - header.size() - 1, ' ');
  header += '\n';
  stream << magic << '\0' << static_cast<char>(header.size() & 0xff)
         << static_cast<char>(header.size() >> 8) << header;
  stream.write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size_bytes()));
}

}  // namespace

template <class T>
NpyArray<T> read_npy(std::istream& stream, const std::string& name, const NpyOptions& options) {
  const NpyHeader header = read_npy_header(stream, name);
  NpyArray<T> array;
  array.shape = header.shape;
  array.values = BodyReader<T>(stream, name, options, header).read();
  if (header.fortran_order && header.shape.rank > 1) {
    array.values = transposed(array.values, header.shape);
  }
  return array;
}

template NpyArray<double> read_npy(std::istream&, const std::string&, const NpyOptions&);
template NpyArray<float> read_npy(std::istream&, const std::string&, const NpyOptions&);
template NpyArray<std::int64_t> read_npy(std::istream&, const std::string&, const NpyOptions&);

void write_npy(std::ostream& stream, std::span<const double> values) {
  write_values(stream, values);
}
void write_npy(std::ostream& stream, std::span<const float> values) {
  write_values(stream, values);
}

}  // namespace pipewright
