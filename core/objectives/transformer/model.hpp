// One stage's part of the model as a function of tokens and weights.
#pragma once

#include <cstdint>

#include "core/objectives/objective.hpp"
#include "core/objectives/transformer/layer.hpp"
#include "core/objectives/transformer/parameters.hpp"

namespace pipewright::transformer {

template <class T>
class Model {
 public:
  Model(const ModelSizes& sizes, const StagePart& part) : sizes_(sizes), part_(part) {}

  const StagePart& part() const { return part_; }
  const ModelSizes& sizes() const { return sizes_; }
  Index parameter_count() const { return transformer::parameter_count(part_, sizes_); }
  /// How many tensors a forward leaves in Saved.
  std::size_t saved_count() const;

  /// The activation [n, t, d], or with the head the logits [n t, vocabulary], of `inputs` [n t]
  /// (looked at by the embeddings) or of x (by the others). Without `keeps`, saved ends up empty.
  Tensor forward(const std::int32_t* inputs, Tokens tokens, const T* weights, Tensor x,
                 Saved& saved, bool keeps) const;
  /// The gradient of x (empty with the embeddings) from that of what forward gave. The weights'
  /// goes to `gradient` (overwritten; null: not wanted).
  Tensor backward(const std::int32_t* inputs, Tokens tokens, const T* weights, Saved& saved,
                  Tensor dy, T* gradient) const;

 private:
  template <class U>
  LayerParameters<U> layer(U* weights, Index number) const;
  template <class U>
  HeadParameters<U> head(U* weights) const;

  ModelSizes sizes_;
  StagePart part_;
};

extern template class Model<float>;
extern template class Model<double>;

}  // namespace pipewright::transformer
