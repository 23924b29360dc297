#include "core/objectives/transformer/model.hpp"

#include <optional>
#include <utility>

#include "core/objectives/transformer/embedding.hpp"

namespace pipewright::transformer {

namespace {

constexpr std::size_t saved_per_layer = 10;
constexpr std::size_t saved_by_head = 3;

}  // namespace

template <class T>
std::size_t Model<T>::saved_count() const {
  return saved_per_layer * static_cast<std::size_t>(part_.layers) +
         (part_.head ? saved_by_head : 0);
}

template <class T>
template <class U>
LayerParameters<U> Model<T>::layer(U* weights, Index number) const {
  U* at = weights + (part_.embeddings ? EmbeddingParameters<U>::count(sizes_) : 0) +
          number * LayerParameters<U>::count(sizes_);
  return LayerParameters<U>(at, sizes_.embedding);
}

template <class T>
template <class U>
HeadParameters<U> Model<T>::head(U* weights) const {
  U* at = weights + parameter_count() - HeadParameters<U>::count(sizes_);
  return HeadParameters<U>(at, sizes_);
}

template <class T>
Tensor Model<T>::forward(const std::int32_t* inputs, Tokens tokens, const T* weights, Tensor x,
                         Saved& saved, bool keeps) const {
  if (part_.embeddings) {
    const T* at = weights;
    const EmbeddingParameters<const T> w(at, sizes_);
    x = new_activation<T>(tokens, sizes_.embedding);
    embedding_forward<T>(inputs, w.token, w.position, x.data<T>(), tokens.n, tokens.t,
                         sizes_.embedding);
  }
  for (Index i = 0; i < part_.layers; ++i) {
    x = layer_forward<T>(layer(weights, i), std::move(x), saved, sizes_, tokens);
    if (!keeps) saved.tensors.clear();
  }
  if (part_.head) x = head_forward<T>(head(weights), std::move(x), saved, sizes_, tokens);
  if (!keeps) saved.tensors.clear();
  return x;
}

template <class T>
Tensor Model<T>::backward(const std::int32_t* inputs, Tokens tokens, const T* weights, Saved& saved,
                          Tensor dy, T* gradient) const {
  if (part_.head) {
    std::optional<HeadParameters<T>> dw;
    if (gradient != nullptr) dw = head(gradient);
    dy = head_backward<T>(head(weights), saved, dy, dw ? &*dw : nullptr, sizes_, tokens);
  }
  for (Index i = part_.layers; i-- > 0;) {
    std::optional<LayerParameters<T>> dw;
    if (gradient != nullptr) dw = layer(gradient, i);
    dy = layer_backward<T>(layer(weights, i), saved, std::move(dy), dw ? &*dw : nullptr, sizes_,
                           tokens);
  }
  if (!part_.embeddings) return dy;
  if (gradient != nullptr) {
    const EmbeddingParameters<T> dw(gradient, sizes_);
    embedding_backward<T>(inputs, dy.data<T>(), dw.token, dw.position, tokens.n, tokens.t,
                          sizes_.embedding, sizes_.vocabulary);
  }
  return {};
}

template class Model<float>;
template class Model<double>;

}  // namespace pipewright::transformer
