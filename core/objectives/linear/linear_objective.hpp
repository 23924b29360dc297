// Linear models: f(w) = (1/n) sum_i loss(z_i, y_i) + l2/2 ||w||^2 with z = X w. What they share; a
// loss makes an objective of it (quadratic.cpp, logistic.cpp).
//
// A stage keeps the columns X_s of its block. For a batch of b rows:
//   forward   x [b] is the sum of the stages before; x += X_s[batch] w_s goes on; the last stage
//   takes
//             the loss and saves dz = (d loss / d z) / b
//   backward  gradient = X_s[batch]^T dz + l2 w_s; dz itself goes on, unchanged
//   evaluate  the same over all n rows: z [n] so far, and with l2 > 0 one number more, the sum of
//             ||w_s||^2 so far
//   full_gradient  goes back with dz over all n rows and one number more, the sum so far of
//             ||X_s^T dz + l2 w_s||^2
// The batch's loss that a last stage reports is the mean of loss(z_i, y_i): no stage of a pipeline
// knows ||w||^2 at that time. The full objective has the l2 term.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/data/libsvm.hpp"
#include "core/objectives/objective.hpp"
#include "core/theory/optimum.hpp"

namespace pipewright::linear {

/// X and y. Of `dense` ([examples, parameters], row-major) and `sparse` one is used.
struct Data {
  std::int64_t examples = 0;
  std::int64_t parameters = 0;
  bool is_sparse = false;
  std::vector<double> dense;
  SparseRows sparse;
  std::vector<double> targets;
  std::function<std::string(std::size_t)> where_target;  // "y.npy: element [3]", for messages
};

/// A loss over `count` examples. Sums go from the first to the last.
struct Loss {
  /// sum of loss(z_i, y_i)
  double (*sum)(const double* z, const double* y, Index count);
  /// The same, and replaces z_i by scale * (d loss / d z)(z_i, y_i).
  double (*sum_and_gradient)(double* z, const double* y, Index count, double scale);
  /// Smoothness and optimum of the whole objective.
  ObjectiveTheory (*theory)(const Data& data, double l2);
};

/// The data as core/theory takes it; refers to `data`.
theory::RowMatrix matrix_of(const Data& data);

/// The parameters `data` and `batch_size`, which every linear model has.
ParamSpec data_parameter();
ParamSpec batch_size_parameter();

/// Reads what data_parameter() describes. Throws DataError.
Data load_data(const Value& data, FileSource& files);

/// Throws ParamError when the batch is larger than the data.
std::unique_ptr<Objective> make_objective(Data data, Loss loss, double l2, std::int64_t batch_size,
                                          int stages);

}  // namespace pipewright::linear
