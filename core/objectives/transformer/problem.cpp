#include "core/objectives/transformer/problem.hpp"

#include <algorithm>
#include <utility>

#include "core/objectives/transformer/cross_entropy.hpp"
#include "core/objectives/transformer/model.hpp"

namespace pipewright::transformer {

namespace {

struct Sequences {
  Index first, count;
};

template <class T>
class TransformerStage : public StageModel {
 public:
  TransformerStage(const Problem& problem, Stage stage)
      : problem_(problem),
        stage_(stage),
        model_(problem.sizes, stage_part(problem.stages, stage.value, problem.sizes.layers)) {}

  Index parameter_count() const override { return model_.parameter_count(); }
  DType dtype() const override { return dtype_of<T>; }
  Shape activation_shape() const override { return activation_of(problem_.batch_size); }
  std::int64_t evaluation_bytes() const override {
    return activation_shape().elements() * static_cast<std::int64_t>(sizeof(T));
  }

  void initialise_random(std::uint64_t seed, Tensor& weights) const override {
    initialise(seed, model_.part(), model_.sizes(), weights.data<T>());
  }

  Tensor forward(Batch batch, const Tensor& weights, Tensor x, Saved& saved,
                 double& loss) override {
    const Sequences range = sequences_of(batch);
    saved.tensors.clear();
    Tensor y;
    double sum = 0;
    if (problem_.recompute) {
      if (!is_first()) saved.tensors.push_back(x.clone());
      y = run(range, weights, std::move(x), work_, false, sum);
    } else {
      y = run(range, weights, std::move(x), saved, true, sum);
    }
    if (is_last()) loss = sum / static_cast<double>(tokens_of(range).count());
    return y;
  }

  Tensor backward(Batch batch, const Tensor& weights, Saved& saved, Tensor dout, Tensor& gradient,
                  bool need_gradient) override {
    const Sequences range = sequences_of(batch);
    if (problem_.recompute) {
      Tensor x;
      if (!is_first()) {
        PW_CHECK(saved.tensors.size() == 1,
                 "stage " << stage_ << ": backward of batch " << batch << " without its forward");
        x = take_last(saved);
      }
      double sum = 0;
      run(range, weights, std::move(x), work_, true, sum);
    }
    Saved& kept = problem_.recompute ? work_ : saved;
    PW_CHECK(kept.tensors.size() == model_.saved_count() + (is_last() ? 1 : 0),
             "stage " << stage_ << ": backward of batch " << batch << " without its forward");
    if (is_last()) {
      dout = take_last(kept);
      cross_entropy_backward<T>(dout.data<T>(), targets_of(range), tokens_of(range).count(),
                                problem_.sizes.vocabulary);
    } else {
      check_shape(dout, range, "gradient");
    }
    return model_.backward(inputs_of(range), tokens_of(range), weights.data<T>(), kept,
                           std::move(dout), need_gradient ? gradient.data<T>() : nullptr);
  }

  std::int64_t evaluation_parts() const override {
    return training_parts() + parts(problem_.validation);
  }

  Tensor evaluate(std::int64_t part, const Tensor& weights, std::uint64_t /*weights_id*/,
                  Tensor partial, Evaluation& value) override {
    if (part == 0) training_loss_ = validation_loss_ = 0;
    const bool is_training = part < training_parts();
    double sum = 0;
    Tensor y = run(evaluated(part), weights, std::move(partial), work_, false, sum);
    if (!is_last()) return y;
    (is_training ? training_loss_ : validation_loss_) += sum;
    if (part + 1 == evaluation_parts()) {
      value.objective = mean(training_loss_, is_sampled() ? training_parts() * problem_.batch_size
                                                          : problem_.training);
      if (problem_.validation > 0) value.validation = mean(validation_loss_, problem_.validation);
    }
    return {};
  }

 private:
  bool is_first() const { return model_.part().embeddings; }
  bool is_last() const { return model_.part().head; }

  Shape activation_of(Index sequences) const {
    return {sequences, problem_.sizes.sequence_length, problem_.sizes.embedding};
  }
  Tokens tokens_of(Sequences range) const { return {range.count, problem_.sizes.sequence_length}; }
  const std::int32_t* inputs_of(Sequences range) const {
    return problem_.tokens->data() + range.first * problem_.sizes.sequence_length;
  }
  const std::int32_t* targets_of(Sequences range) const { return inputs_of(range) + 1; }

  Sequences sequences_of(Batch batch) const {
    PW_CHECK(batch.value >= 0 && (batch.value + 1) * problem_.batch_size <= problem_.training,
             "stage " << stage_ << ": batch " << batch << " of "
                      << problem_.training / problem_.batch_size);
    return {batch.value * problem_.batch_size, problem_.batch_size};
  }

  Index parts(Index sequences) const {
    return (sequences + problem_.batch_size - 1) / problem_.batch_size;
  }
  bool is_sampled() const { return problem_.evaluation_batches > 0; }
  Index training_parts() const {
    return is_sampled() ? problem_.evaluation_batches : parts(problem_.training);
  }
  /// The sequences of a part of an evaluation: of one kind, as many as a batch has or what is left.
  Sequences evaluated(std::int64_t part) const {
    const bool is_training = part < training_parts();
    if (is_training && is_sampled()) {
      const Index batches = problem_.training / problem_.batch_size;
      return sequences_of(Batch(part * batches / training_parts()));
    }
    const Index end = problem_.training + (is_training ? 0 : problem_.validation);
    const Index first = (is_training ? 0 : problem_.training) +
                        (is_training ? part : part - training_parts()) * problem_.batch_size;
    return {first, std::min(problem_.batch_size, end - first)};
  }
  double mean(double sum, Index sequences) const {
    return sum / static_cast<double>(sequences * problem_.sizes.sequence_length);
  }

  void check_shape(const Tensor& tensor, Sequences range, const char* what) const {
    PW_CHECK(tensor.shape() == activation_of(range.count),
             "stage " << stage_ << ": " << what << " of shape " << tensor.shape().text()
                      << ", expected " << activation_of(range.count).text());
  }

  /// The activation for the next stage; on the last an empty tensor and the sum of the losses. What
  /// a backward needs is added to `saved` if it is to be kept, the probabilities of the last stage
  /// at the end.
  Tensor run(Sequences range, const Tensor& weights, Tensor x, Saved& saved, bool keeps,
             double& loss_sum) const {
    if (!is_first()) check_shape(x, range, "activation");
    const Tokens tokens = tokens_of(range);
    Tensor y =
        model_.forward(inputs_of(range), tokens, weights.data<T>(), std::move(x), saved, keeps);
    if (!is_last()) return y;
    loss_sum = cross_entropy_forward<T>(y.data<T>(), targets_of(range), tokens.count(),
                                        problem_.sizes.vocabulary);
    if (keeps) saved.tensors.push_back(std::move(y));
    return {};
  }

  const Problem problem_;
  const Stage stage_;
  const Model<T> model_;
  Saved work_;                                      // of forwards that keep nothing
  double training_loss_ = 0, validation_loss_ = 0;  // sums over the parts so far
};

template <class T>
class TransformerObjective : public Objective {
 public:
  explicit TransformerObjective(const Problem& problem) : problem_(problem) {
    const ModelSizes& sizes = problem.sizes;
    shape_.stages = problem.stages;
    shape_.examples = problem.training;
    shape_.batch_size = problem.batch_size;
    shape_.batches = problem.training / problem.batch_size;
    shape_.dtype = dtype_of<T>;
    for (int s = 0; s < problem.stages; ++s) {
      shape_.block_parameters.push_back(
          parameter_count(stage_part(problem.stages, s, sizes.layers), sizes));
    }
    shape_.tokens_per_batch = problem.batch_size * sizes.sequence_length;
    shape_.activation_bytes =
        shape_.tokens_per_batch * sizes.embedding * static_cast<std::int64_t>(sizeof(T));
    shape_.evaluation_bytes = shape_.activation_bytes;
    shape_.data_bytes = static_cast<std::int64_t>(problem.tokens->size() * sizeof(std::int32_t));
    shape_.facts = problem.facts;
  }

  const ObjectiveShape& shape() const override { return shape_; }
  std::unique_ptr<StageModel> make_stage(Stage stage) const override {
    return std::make_unique<TransformerStage<T>>(problem_, stage);
  }

 private:
  Problem problem_;
  ObjectiveShape shape_;
};

}  // namespace

template <class T>
std::unique_ptr<Objective> make_objective(const Problem& problem) {
  return std::make_unique<TransformerObjective<T>>(problem);
}

template std::unique_ptr<Objective> make_objective<float>(const Problem&);
template std::unique_ptr<Objective> make_objective<double>(const Problem&);

}  // namespace pipewright::transformer
