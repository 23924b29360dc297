// The parameters of the model, in the order in which they stand in a stage's flat weights; their
// names are PyTorch's. A stage holds, of
//   embeddings, layer 0, ..., layer L - 1, head
// one stretch, so the weights of all stages one behind the other are the same whatever the number
// of stages.
#pragma once

#include <cstdint>
#include <utility>

#include "core/base/tensor.hpp"

namespace pipewright::transformer {

struct ModelSizes {
  Index vocabulary = 0;
  Index sequence_length = 0;
  Index embedding = 0;
  Index heads = 1;
  Index layers = 1;
};

/// The next `size` numbers.
template <class T>
T* take(T*& at, Index size) {
  return std::exchange(at, at + size);
}

template <class T>
struct EmbeddingParameters {
  T* token;     // tok_emb.weight [vocabulary, d]
  T* position;  // pos_emb.weight [sequence_length, d]

  EmbeddingParameters(T*& at, const ModelSizes& sizes)
      : token(take(at, sizes.vocabulary * sizes.embedding)),
        position(take(at, sizes.sequence_length * sizes.embedding)) {}
  static Index count(const ModelSizes& sizes) {
    return (sizes.vocabulary + sizes.sequence_length) * sizes.embedding;
  }
};

template <class T>
struct LayerParameters {
  T *ln_1_weight, *ln_1_bias;      // [d], [d]
  T *c_attn_weight, *c_attn_bias;  // attn.c_attn [3d, d], [3d]
  T *c_proj_weight, *c_proj_bias;  // attn.c_proj [d, d], [d]
  T *ln_2_weight, *ln_2_bias;      // [d], [d]
  T *mlp_0_weight, *mlp_0_bias;    // [4d, d], [4d]
  T *mlp_2_weight, *mlp_2_bias;    // [d, 4d], [d]

  LayerParameters(T*& at, Index d)
      : ln_1_weight(take(at, d)),
        ln_1_bias(take(at, d)),
        c_attn_weight(take(at, 3 * d * d)),
        c_attn_bias(take(at, 3 * d)),
        c_proj_weight(take(at, d * d)),
        c_proj_bias(take(at, d)),
        ln_2_weight(take(at, d)),
        ln_2_bias(take(at, d)),
        mlp_0_weight(take(at, 4 * d * d)),
        mlp_0_bias(take(at, 4 * d)),
        mlp_2_weight(take(at, 4 * d * d)),
        mlp_2_bias(take(at, d)) {}
  static Index count(const ModelSizes& sizes) {
    return 12 * sizes.embedding * sizes.embedding + 13 * sizes.embedding;
  }
};

template <class T>
struct HeadParameters {
  T *ln_f_weight, *ln_f_bias;  // [d], [d]
  T* lm_head_weight;           // [vocabulary, d]

  HeadParameters(T*& at, const ModelSizes& sizes)
      : ln_f_weight(take(at, sizes.embedding)),
        ln_f_bias(take(at, sizes.embedding)),
        lm_head_weight(take(at, sizes.vocabulary * sizes.embedding)) {}
  static Index count(const ModelSizes& sizes) { return (2 + sizes.vocabulary) * sizes.embedding; }
};

/// What of the model one stage holds.
struct StagePart {
  bool embeddings = false;
  Index first_layer = 0;
  Index layers = 0;
  bool head = false;
};

/// Three stages or more: the first has the embeddings, the last the head, the others share the
/// layers, the first of them one more where that does not come out even. Two: the first has the
/// embeddings and half of the layers, rounded up.
StagePart stage_part(int stages, int stage, Index layers);

Index parameter_count(const StagePart& part, const ModelSizes& sizes);

/// GPT-2's starting weights (Radford et al., "Language models are unsupervised multitask learners",
/// section 2.3, and its code): normal with deviation 0.02, the projections back into the residual
/// divided by sqrt(2 layers), biases 0, weights of norms 1. The draws are keyed by the place in the
/// model, so they do not depend on how it is cut into stages.
template <class T>
void initialise(std::uint64_t seed, const StagePart& part, const ModelSizes& sizes, T* weights);

extern template void initialise(std::uint64_t, const StagePart&, const ModelSizes&, float*);
extern template void initialise(std::uint64_t, const StagePart&, const ModelSizes&, double*);

}  // namespace pipewright::transformer
