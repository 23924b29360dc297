// The columns of the data matrix X that one stage of a linear model keeps: dense row-major, or
// sparse.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/tensor.hpp"
#include "core/data/libsvm.hpp"
#include "core/data/partition.hpp"

namespace pipewright::linear {

/// X_s, [examples, columns()]. Its products add up in one fixed order and allocate nothing.
class ColumnBlock {
 public:
  /// The columns `range` of `all`, which is row-major with `parameters` columns.
  static ColumnBlock dense(const std::vector<double>& all, std::int64_t parameters,
                           BlockRange range);
  static ColumnBlock sparse(const SparseRows& all, BlockRange range);

  Index columns() const { return columns_; }

  /// z[i] = (or +=, with `add`) row (first + i) times w, for i < count.
  void multiply(Index first, Index count, const double* w, double* z, bool add) const;
  /// g = sum over i < count of row (first + i) times dz[i].
  void multiply_transposed(Index first, Index count, const double* dz, double* g) const;

 private:
  explicit ColumnBlock(Index columns) : columns_(columns) {}

  Index columns_;
  bool is_sparse_ = false;
  Buffer dense_;
  std::vector<std::int64_t> row_starts_;  // CSR, column numbers within the block
  std::vector<std::int32_t> entry_columns_;
  std::vector<double> entry_values_;
};

}  // namespace pipewright::linear
