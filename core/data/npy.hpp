// NumPy's NPY files (format versions 1 to 3): arrays of one to four dimensions of little-endian
// numbers. Reading converts to the type asked for only where every value survives exactly.
#pragma once

#include <cstdint>
#include <istream>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "core/base/tensor.hpp"

namespace pipewright {

template <class T>
struct NpyArray {
  Shape shape;
  std::vector<T> values;  // row-major, whatever the order in the file
};

struct NpyOptions {
  bool finite_only = true;  // refuse nan and inf
};

/// Reads an array as T (double, float or std::int64_t) and demands that the stream ends after it.
/// Throws DataError, with name and byte, for: a bad magic string, version or header; dtypes other
/// than <f4, <f8 and the integers up to 64 bits; 0-d and more than 4-d shapes; a stream that ends
/// early or late; a value that T cannot hold exactly; nan and inf. Never allocates much more than
/// the stream holds.
template <class T>
NpyArray<T> read_npy(std::istream& stream, const std::string& name, const NpyOptions& options = {});

extern template NpyArray<double> read_npy(std::istream&, const std::string&, const NpyOptions&);
extern template NpyArray<float> read_npy(std::istream&, const std::string&, const NpyOptions&);
extern template NpyArray<std::int64_t> read_npy(std::istream&, const std::string&,
                                                const NpyOptions&);

/// Writes a 1-d array byte for byte as numpy.save does. The caller checks the state of the stream.
void write_npy(std::ostream& stream, std::span<const double> values);
void write_npy(std::ostream& stream, std::span<const float> values);

}  // namespace pipewright
