// The header of an NPY file: magic string, version, and a Python dictionary literal.
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <string_view>

#include "core/base/tensor.hpp"

namespace pipewright {

enum class NpyType : std::uint8_t { f4, f8, i1, i2, i4, i8, u1, u2, u4, u8 };
std::int64_t size_of(NpyType type);
/// "float64", "int32", ...
std::string_view name_of(NpyType type);

struct NpyHeader {
  NpyType type = NpyType::f8;
  bool fortran_order = false;
  Shape shape;
  std::int64_t elements = 0;
  std::int64_t data_start = 0;  // byte at which the numbers begin
};

/// Reads up to the first number. Throws DataError ("NAME: byte N: what is wrong").
NpyHeader read_npy_header(std::istream& stream, const std::string& name);

/// "(60, 22)", as Python writes it.
std::string npy_shape_text(const Shape& shape);

}  // namespace pipewright
