#include "core/objectives/linear/column_block.hpp"

#include <Eigen/Core>

#include <algorithm>

namespace pipewright::linear {

namespace {

using Rows =
    Eigen::Map<const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;
using Vector = Eigen::Map<Eigen::VectorXd>;
using ConstVector = Eigen::Map<const Eigen::VectorXd>;

}  // namespace

ColumnBlock ColumnBlock::dense(const std::vector<double>& all, std::int64_t parameters,
                               BlockRange range) {
  ColumnBlock block(range.size);
  const auto examples = static_cast<std::int64_t>(all.size()) / parameters;
  block.dense_.resize(static_cast<std::size_t>(examples * range.size) * sizeof(double));
  auto* to = reinterpret_cast<double*>(block.dense_.data());
  for (std::int64_t row = 0; row < examples; ++row) {
    to = std::copy_n(all.data() + row * parameters + range.first, range.size, to);
  }
  return block;
}

ColumnBlock ColumnBlock::sparse(const SparseRows& all, BlockRange range) {
  ColumnBlock block(range.size);
  block.is_sparse_ = true;
  block.row_starts_.reserve(all.row_starts.size());
  block.row_starts_.push_back(0);
  for (std::size_t row = 0; row + 1 < all.row_starts.size(); ++row) {
    const auto row_begin = all.columns.begin() + all.row_starts[row];
    const auto row_end = all.columns.begin() + all.row_starts[row + 1];
    const auto from = std::lower_bound(row_begin, row_end, range.first);
    const auto to = std::lower_bound(from, row_end, range.first + range.size);
    for (auto entry = from; entry != to; ++entry) {
      block.entry_columns_.push_back(static_cast<std::int32_t>(*entry - range.first));
    }
    block.entry_values_.insert(block.entry_values_.end(),
                               all.values.begin() + (from - all.columns.begin()),
                               all.values.begin() + (to - all.columns.begin()));
    block.row_starts_.push_back(static_cast<std::int64_t>(block.entry_values_.size()));
  }
  block.entry_columns_.shrink_to_fit();
  block.entry_values_.shrink_to_fit();
  return block;
}

void ColumnBlock::multiply(Index first, Index count, const double* w, double* z, bool add) const {
  if (!add) std::fill_n(z, count, 0.0);
  if (!is_sparse_) {
    if (columns_ == 0) return;
    const Rows rows(reinterpret_cast<const double*>(dense_.data()) + first * columns_, count,
                    columns_);
    Vector(z, count).noalias() += rows * ConstVector(w, columns_);
    return;
  }
  const std::int64_t* const starts = row_starts_.data() + first;
  for (Index i = 0; i < count; ++i) {
    double sum = 0;
    for (std::int64_t e = starts[i]; e < starts[i + 1]; ++e) {
      sum += entry_values_[static_cast<std::size_t>(e)] *
             w[entry_columns_[static_cast<std::size_t>(e)]];
    }
    z[i] += sum;
  }
}

void ColumnBlock::multiply_transposed(Index first, Index count, const double* dz, double* g) const {
  if (!is_sparse_) {
    if (columns_ == 0) return;
    const Rows rows(reinterpret_cast<const double*>(dense_.data()) + first * columns_, count,
                    columns_);
    Vector(g, columns_).noalias() = rows.transpose() * ConstVector(dz, count);
    return;
  }
  std::fill_n(g, columns_, 0.0);
  const std::int64_t* const starts = row_starts_.data() + first;
  for (Index i = 0; i < count; ++i) {
    for (std::int64_t e = starts[i]; e < starts[i + 1]; ++e) {
      g[entry_columns_[static_cast<std::size_t>(e)]] +=
          entry_values_[static_cast<std::size_t>(e)] * dz[i];
    }
  }
}

}  // namespace pipewright::linear
