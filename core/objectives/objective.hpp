// What an objective offers. An Objective is a whole problem (data, loss, how it is cut into
// blocks); a StageModel is one stage's part of it, without weights: weights are versioned and
// belong to the executor, which passes the right version to every call.
//
// Every objective is one .cpp file in this folder with a Registration<ObjectiveKind>. All calls are
// deterministic: the same inputs give the same bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.hpp"
#include "core/base/params.hpp"
#include "core/base/registry.hpp"
#include "core/base/tensor.hpp"
#include "core/data/file_source.hpp"

namespace pipewright {

/// What a forward keeps for its backward, beside the weights; the model alone knows what is in it.
struct Saved {
  std::vector<Tensor> tensors;
  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const Tensor& tensor : tensors) sum += tensor.bytes();
    return sum;
  }
};

/// What a last stage says of the weights.
struct Evaluation {
  double objective = 0;              // the full objective
  std::optional<double> validation;  // the same over examples that are kept from training
};

/// One stage's part of an objective. Calls may use scratch space, so a StageModel belongs to one
/// thread; it may serve several replicas in turn.
class StageModel {
 public:
  virtual ~StageModel() = default;

  /// Length of the block; weights and gradients are tensors of shape [parameter_count()].
  virtual Index parameter_count() const = 0;
  virtual DType dtype() const = 0;
  /// What a forward sends to the next stage, and a backward gets back (same shape). On the last
  /// stage: what the one before it sends.
  virtual Shape activation_shape() const = 0;

  /// Sets `weights` to the starting values that `init: random` asks for; the draws depend on seed,
  /// stage and position only. (`zeros` and files are handled by the caller.)
  virtual void initialise_random(std::uint64_t seed, Tensor& weights) const = 0;

  /// Forward of `batch`. `x` is the activation from the stage before (empty on stage 0) and may be
  /// used up. Gives the activation for the next stage; on the last stage an empty tensor, and
  /// `loss` is set to the batch's loss.
  virtual Tensor forward(Batch batch, const Tensor& weights, Tensor x, Saved& saved,
                         double& loss) = 0;

  /// Backward of the batch whose forward filled `saved` with the same weights. `dout` is the
  /// gradient of this stage's output (empty on the last stage) and may be used up; the block's
  /// gradient is written to `gradient` (overwritten). Gives the gradient of `x` (empty on stage 0).
  /// With `need_gradient` false only the gradient of x is wanted (`gradient` stays as it is).
  virtual Tensor backward(Batch batch, const Tensor& weights, Saved& saved, Tensor dout,
                          Tensor& gradient, bool need_gradient) = 0;

  /// In how many parts an evaluation comes, the same on every stage.
  virtual std::int64_t evaluation_parts() const { return 1; }
  /// This stage's link of the chain that gives the full objective over all examples, for one of its
  /// parts; they are asked for in their order, each evaluation from part 0. `partial` is what the
  /// stage before gave (empty on stage 0); the result goes to the next. The last stage gives an
  /// empty tensor, and sets `value` with the last part. `weights_id` names the contents of
  /// `weights`: a call with the id of the call before may use what it computed then, so a block
  /// update of a linear model costs one block's share (n d / S for n examples and d parameters) and
  /// an evaluation after no update only a sum.
  virtual Tensor evaluate(std::int64_t part, const Tensor& weights, std::uint64_t weights_id,
                          Tensor partial, Evaluation& value) = 0;
  /// Bytes of what evaluate() hands on for one part, at most.
  virtual std::int64_t evaluation_bytes() const = 0;

  /// Whether full_gradient() is offered. Asked of every stage before a run that needs it.
  virtual bool offers_full_gradient() const { return false; }
  /// This stage's link of the chain back that gives the squared norm of the gradient of the full
  /// objective, summed from the last stage to the first. `back` is what the stage after gave (empty
  /// on the last, which is asked right after its evaluate() of the same weights); the result goes
  /// to the stage before. Stage 0 gives an empty tensor and sets `norm_sq`. `weights` are those
  /// that this stage was given in the evaluate() that the chain follows back.
  virtual Tensor full_gradient(const Tensor& /*weights*/, Tensor /*back*/, double& /*norm_sq*/) {
    PW_CHECK(false, "an objective was asked for a gradient that it does not offer");
  }
};

/// What theory needs to know of an objective, as far as it is known.
struct ObjectiveTheory {
  std::optional<double> smoothness;  // L: the gradient's Lipschitz constant
  std::optional<double> optimum;     // f*: the least value
};

/// Sizes of a problem, known once its data has been read.
struct ObjectiveShape {
  int stages = 1;
  std::int64_t examples = 0;
  std::int64_t batch_size = 0;
  std::int64_t batches = 0;  // floor(examples / batch_size); left-over rows never train
  DType dtype = DType::float64;
  std::vector<std::int64_t> block_parameters;  // per stage
  std::int64_t activation_bytes = 0;           // payload of one message between stages
  std::int64_t evaluation_bytes = 0;           // per stage and evaluation of the full objective
  std::int64_t data_bytes = 0;                 // what all stages together keep of the data
  /// Of a language model, whose losses are nats per token; 0 of others.
  std::int64_t tokens_per_batch = 0;
  /// A map of what else the objective wants in the run's summary, its keys sorted; may be null.
  Value facts;
  ObjectiveTheory theory;  // of runs that ask for it

  std::int64_t parameters() const {
    std::int64_t sum = 0;
    for (const std::int64_t block : block_parameters) sum += block;
    return sum;
  }
};

class Objective {
 public:
  virtual ~Objective() = default;
  virtual const ObjectiveShape& shape() const = 0;
  /// The part of one stage; keeps what it needs of the data, so the Objective may go afterwards.
  virtual std::unique_ptr<StageModel> make_stage(Stage stage) const = 0;
  /// Computed when it is called; may take seconds.
  virtual ObjectiveTheory theory() const { return {}; }
};

/// Whether the starting weights are zeros unless the job says otherwise.
enum class DefaultInit { zeros, random };
/// Whether the full objective is taken at about 200 ticks unless the job says otherwise.
enum class DefaultObserve { evenly, never };

/// Continues a text by a trained model.
class TextGenerator {
 public:
  virtual ~TextGenerator() = default;
  /// The tokens of a prompt. Throws DataError for what is not in the vocabulary.
  virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  virtual std::string decode(std::int32_t token) const = 0;
  /// The logits [vocabulary] of the token after `tokens`, of which there is at least one; those
  /// before the last sequence_length are not looked at.
  virtual std::vector<float> next(std::span<const std::int32_t> tokens) = 0;
};

struct ObjectiveContext {
  int stages = 1;
  FileSource& files;
};

struct ObjectiveKind {
  std::string kind;
  std::string summary;
  std::vector<ParamSpec> parameters;
  DefaultInit default_init = DefaultInit::zeros;
  DefaultObserve default_observe = DefaultObserve::evenly;
  /// `parameters` have passed check_params against the list above. Throws DataError for bad data,
  /// ParamError (path relative to the objective's own map) for parameters that do not fit it.
  std::function<std::unique_ptr<Objective>(const Value& parameters,
                                           const ObjectiveContext& context)>
      load;
  /// Of language models: a generator from a run's checked parameters, its number of stages, the
  /// facts of its ObjectiveShape and its weights (all blocks, in the order of the stages). Throws
  /// DataError when they do not fit each other.
  std::function<std::unique_ptr<TextGenerator>(const Value& parameters, int stages,
                                               const Value& facts, Tensor weights)>
      generator = {};
};

using ObjectiveRegistry = Registry<ObjectiveKind>;

}  // namespace pipewright
