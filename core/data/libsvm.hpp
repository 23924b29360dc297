// Reader of the LIBSVM text format: one example per line, "LABEL INDEX:VALUE INDEX:VALUE ...",
// indices from 1 and ascending, what is not named is 0, '#' starts a comment. Sparse rows come out
// as CSR.
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <string>
#include <vector>

namespace pipewright {

/// Compressed sparse rows: the entries of row i are [row_starts[i], row_starts[i + 1]) of `columns`
/// (from 0, ascending) and `values`.
struct SparseRows {
  std::int64_t column_count = 0;
  std::vector<std::int64_t> row_starts{0};
  std::vector<std::int32_t> columns;
  std::vector<double> values;

  std::int64_t row_count() const { return static_cast<std::int64_t>(row_starts.size()) - 1; }
};

struct LibsvmData {
  SparseRows rows;
  std::vector<double> labels;       // one per row, as in the file
  std::vector<std::int64_t> lines;  // the line of each row, from 1: for messages
};

struct LibsvmOptions {
  std::int64_t features = 0;  // 0: the largest index of the file
  std::size_t line_bytes_max = std::size_t{64} << 20;
};

/// Reads all of `stream`. Throws DataError ("NAME:LINE: what is wrong") for anything that is not
/// the format above: numbers that are not finite, indices below 1, out of order or above the number
/// of features, lines above the limit, no examples at all.
LibsvmData read_libsvm(std::istream& stream, const std::string& name,
                       const LibsvmOptions& options = {});

}  // namespace pipewright
