#include "core/objectives/transformer/parameters.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/ids.hpp"
#include "core/base/random.hpp"
#include "core/data/partition.hpp"

namespace pipewright::transformer {

StagePart stage_part(int stages, int stage, Index layers) {
  StagePart part;
  part.embeddings = stage == 0;
  part.head = stage + 1 == stages;
  if (stages == 1) {
    part.layers = layers;
  } else if (stages == 2) {
    const Index first_half = (layers + 1) / 2;
    part.first_layer = stage == 0 ? 0 : first_half;
    part.layers = stage == 0 ? first_half : layers - first_half;
  } else if (!part.embeddings && !part.head) {
    const BlockRange range = block_range(layers, stages - 2, Stage(stage - 1));
    part.first_layer = range.first;
    part.layers = range.size;
  }
  return part;
}

Index parameter_count(const StagePart& part, const ModelSizes& sizes) {
  return (part.embeddings ? EmbeddingParameters<float>::count(sizes) : 0) +
         part.layers * LayerParameters<float>::count(sizes) +
         (part.head ? HeadParameters<float>::count(sizes) : 0);
}

namespace {

constexpr double deviation = 0.02;

/// The draws of one part of the model: 0 the embeddings, 1 + i layer i, 1 + L the head.
class Draws {
 public:
  Draws(std::uint64_t seed, Index part_of_model)
      : stream_(seed, DrawKind::initial_weights, static_cast<std::uint32_t>(part_of_model)) {}

  template <class T>
  void normal(T* weights, Index count, double scale = deviation) {
    for (Index i = 0; i < count; ++i) weights[i] = static_cast<T>(scale * stream_.normal());
  }

 private:
  RandomStream stream_;
};

template <class T>
void initialise_layer(Draws draws, const LayerParameters<T>& to, const ModelSizes& sizes) {
  const Index d = sizes.embedding;
  const double to_residual = deviation / std::sqrt(2 * static_cast<double>(sizes.layers));
  std::fill_n(to.ln_1_weight, d, T{1});
  draws.normal(to.c_attn_weight, 3 * d * d);
  draws.normal(to.c_proj_weight, d * d, to_residual);
  std::fill_n(to.ln_2_weight, d, T{1});
  draws.normal(to.mlp_0_weight, 4 * d * d);
  draws.normal(to.mlp_2_weight, 4 * d * d, to_residual);
}

}  // namespace

template <class T>
void initialise(std::uint64_t seed, const StagePart& part, const ModelSizes& sizes, T* weights) {
  std::fill_n(weights, parameter_count(part, sizes), T{0});
  if (part.embeddings) {
    const EmbeddingParameters<T> to(weights, sizes);
    Draws draws(seed, 0);
    draws.normal(to.token, sizes.vocabulary * sizes.embedding);
    draws.normal(to.position, sizes.sequence_length * sizes.embedding);
  }
  for (Index i = 0; i < part.layers; ++i) {
    const LayerParameters<T> to(weights, sizes.embedding);
    initialise_layer(Draws(seed, 1 + part.first_layer + i), to, sizes);
  }
  if (part.head) {
    const HeadParameters<T> to(weights, sizes);
    std::fill_n(to.ln_f_weight, sizes.embedding, T{1});
    Draws(seed, 1 + sizes.layers).normal(to.lm_head_weight, sizes.vocabulary * sizes.embedding);
  }
}

template void initialise(std::uint64_t, const StagePart&, const ModelSizes&, float*);
template void initialise(std::uint64_t, const StagePart&, const ModelSizes&, double*);

}  // namespace pipewright::transformer
