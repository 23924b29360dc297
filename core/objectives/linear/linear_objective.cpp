#include "core/objectives/linear/linear_objective.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/random.hpp"
#include "core/base/tensor_math.hpp"
#include "core/data/partition.hpp"
#include "core/objectives/linear/column_block.hpp"

namespace pipewright::linear {

namespace {

/// What all stages of a problem have in common.
struct Common {
  Loss loss;
  double l2;
  std::int64_t examples;
  std::int64_t parameters;
  std::int64_t batch_size;
  std::int64_t batches;
  int stages;

  std::int64_t evaluation_numbers() const { return examples + (l2 > 0 ? 1 : 0); }
};

class LinearStage : public StageModel {
 public:
  /// `targets` is empty except on the last stage.
  LinearStage(const Common& common, Stage stage, ColumnBlock block, Tensor targets)
      : common_(common), stage_(stage), block_(std::move(block)), targets_(std::move(targets)) {}

  Index parameter_count() const override { return block_.columns(); }
  DType dtype() const override { return DType::float64; }
  Shape activation_shape() const override { return {common_.batch_size}; }
  std::int64_t evaluation_bytes() const override {
    return common_.evaluation_numbers() * static_cast<std::int64_t>(sizeof(double));
  }

  /// Normal entries of variance 1/d, so that predictions on data of unit variance have variance 1.
  void initialise_random(std::uint64_t seed, Tensor& weights) const override {
    RandomStream draws(seed, DrawKind::initial_weights, static_cast<std::uint32_t>(stage_.value));
    const double scale = 1 / std::sqrt(static_cast<double>(common_.parameters));
    auto* w = weights.data<double>();
    for (Index i = 0; i < block_.columns(); ++i) w[i] = scale * draws.normal();
  }

  Tensor forward(Batch batch, const Tensor& weights, Tensor x, Saved& saved,
                 double& loss) override {
    const Index b = common_.batch_size;
    const Index row = first_row(batch);
    Tensor z = x.empty() ? Tensor(DType::float64, {b}) : std::move(x);
    check_size(z, b, "activation");
    block_.multiply(row, b, weights.data<double>(), z.data<double>(), !is_first());
    saved.tensors.clear();
    if (!is_last()) return z;
    const double scale = 1 / static_cast<double>(b);
    loss = scale *
           common_.loss.sum_and_gradient(z.data<double>(), targets_.data<double>() + row, b, scale);
    saved.tensors.push_back(std::move(z));
    return {};
  }

  Tensor backward(Batch batch, const Tensor& weights, Saved& saved, Tensor dout, Tensor& gradient,
                  bool need_gradient) override {
    const Index b = common_.batch_size;
    PW_CHECK(!is_last() || saved.tensors.size() == 1,
             "stage " << stage_ << ": backward of batch " << batch << " without its forward");
    Tensor dz = is_last() ? std::move(saved.tensors.front()) : std::move(dout);
    check_size(dz, b, "gradient");
    if (need_gradient && block_.columns() > 0) {
      block_.multiply_transposed(first_row(batch), b, dz.data<double>(), gradient.data<double>());
      if (common_.l2 > 0) vec<double>(gradient) += common_.l2 * vec<double>(weights);
    }
    if (is_first()) return {};
    return dz;
  }

  Tensor evaluate(std::int64_t /*part*/, const Tensor& weights, std::uint64_t weights_id,
                  Tensor partial, Evaluation& value) override {
    if (share_.empty() || weights_id != share_id_) take_share(weights, weights_id);
    Tensor sum = add_share(std::move(partial));
    if (!is_last()) return sum;
    const Index n = common_.examples;
    const double* z = sum.empty() ? share_.data<double>() : sum.data<double>();
    value.objective = common_.loss.sum(z, targets_.data<double>(), n) / static_cast<double>(n);
    if (common_.l2 > 0) value.objective += common_.l2 / 2 * z[n];
    evaluated_ = std::move(sum);
    return {};
  }

  bool offers_full_gradient() const override { return true; }

  Tensor full_gradient(const Tensor& weights, Tensor back, double& norm_sq) override {
    const Index n = common_.examples;
    if (is_last()) {
      const Tensor& z = evaluated_.empty() ? share_ : evaluated_;
      PW_CHECK(!z.empty(), "stage " << stage_ << ": a full gradient before an evaluation");
      back = Tensor(DType::float64, {n + 1});
      auto* dz = back.data<double>();
      std::copy_n(z.data<double>(), n, dz);
      common_.loss.sum_and_gradient(dz, targets_.data<double>(), n, 1 / static_cast<double>(n));
      dz[n] = 0;
    }
    check_size(back, n + 1, "full gradient");
    if (block_.columns() > 0) {
      Tensor gradient(DType::float64, {block_.columns()});
      block_.multiply_transposed(0, n, back.data<double>(), gradient.data<double>());
      if (common_.l2 > 0) vec<double>(gradient) += common_.l2 * vec<double>(weights);
      back.data<double>()[n] += vec<double>(gradient).squaredNorm();
    }
    if (!is_first()) return back;
    norm_sq = back.data<double>()[n];
    return {};
  }

 private:
  bool is_first() const { return stage_.value == 0; }
  bool is_last() const { return stage_.value == common_.stages - 1; }

  Index first_row(Batch batch) const {
    PW_CHECK(batch.value >= 0 && batch.value < common_.batches,
             "stage " << stage_ << ": batch " << batch << " of " << common_.batches);
    return batch.value * common_.batch_size;
  }

  void check_size(const Tensor& tensor, Index size, const char* what) const {
    PW_CHECK(tensor.elements() == size, "stage " << stage_ << ": " << what << " of shape "
                                                 << tensor.shape().text() << ", expected [" << size
                                                 << "]");
  }

  /// X_s w_s over all rows, and ||w_s||^2 behind it.
  void take_share(const Tensor& weights, std::uint64_t weights_id) {
    if (share_.empty()) share_ = Tensor(DType::float64, {common_.evaluation_numbers()});
    auto* share = share_.data<double>();
    block_.multiply(0, common_.examples, weights.data<double>(), share, false);
    if (common_.l2 > 0) share[common_.examples] = vec<double>(weights).squaredNorm();
    share_id_ = weights_id;
  }

  /// Empty when this stage is the only one: share_ itself is the sum.
  Tensor add_share(Tensor partial) const {
    if (is_first()) return is_last() ? Tensor() : share_.clone();
    check_size(partial, common_.evaluation_numbers(), "evaluation");
    vec<double>(partial) += vec<double>(share_);
    return partial;
  }

  const Common common_;
  const Stage stage_;
  const ColumnBlock block_;
  const Tensor targets_;
  Tensor share_;  // of the weights named share_id_, once there are any
  std::uint64_t share_id_ = 0;
  Tensor evaluated_;  // z of the last evaluation on a last stage; empty where that is share_
};

class LinearObjective : public Objective {
 public:
  LinearObjective(Data data, const Common& common) : data_(std::move(data)), common_(common) {
    shape_.stages = common.stages;
    shape_.examples = common.examples;
    shape_.batch_size = common.batch_size;
    shape_.batches = common.batches;
    for (int s = 0; s < common.stages; ++s) {
      shape_.block_parameters.push_back(
          block_range(common.parameters, common.stages, Stage(s)).size);
    }
    static constexpr std::int64_t number = sizeof(double);
    shape_.activation_bytes = common.batch_size * number;
    shape_.evaluation_bytes = common.evaluation_numbers() * number;
    shape_.data_bytes = common.examples * number + matrix_bytes();
  }

  const ObjectiveShape& shape() const override { return shape_; }

  std::unique_ptr<StageModel> make_stage(Stage stage) const override {
    const BlockRange range = block_range(common_.parameters, common_.stages, stage);
    const bool last = stage.value == common_.stages - 1;
    Tensor targets(DType::float64, {last ? common_.examples : 0});
    if (last) std::copy(data_.targets.begin(), data_.targets.end(), targets.data<double>());
    return std::make_unique<LinearStage>(
        common_, stage,
        data_.is_sparse ? ColumnBlock::sparse(data_.sparse, range)
                        : ColumnBlock::dense(data_.dense, common_.parameters, range),
        std::move(targets));
  }

  ObjectiveTheory theory() const override { return common_.loss.theory(data_, common_.l2); }

 private:
  std::int64_t matrix_bytes() const {
    if (!data_.is_sparse) return common_.examples * common_.parameters * std::int64_t{8};
    const auto entries = static_cast<std::int64_t>(data_.sparse.values.size());
    return entries * 12 + common_.stages * (common_.examples + 1) * std::int64_t{8};
  }

  const Data data_;
  const Common common_;
  ObjectiveShape shape_;
};

}  // namespace

theory::RowMatrix matrix_of(const Data& data) {
  return {data.examples, data.parameters, data.is_sparse ? nullptr : data.dense.data(),
          data.is_sparse ? &data.sparse : nullptr};
}

std::unique_ptr<Objective> make_objective(Data data, Loss loss, double l2, std::int64_t batch_size,
                                          int stages) {
  if (batch_size > data.examples) {
    throw ParamError("batch_size", std::to_string(batch_size) +
                                       " is above the number of examples, " +
                                       std::to_string(data.examples));
  }
  const Common common{.loss = loss,
                      .l2 = l2,
                      .examples = data.examples,
                      .parameters = data.parameters,
                      .batch_size = batch_size,
                      .batches = data.examples / batch_size,
                      .stages = stages};
  return std::make_unique<LinearObjective>(std::move(data), common);
}

}  // namespace pipewright::linear
