// A layer of the model, with the norms before (Radford et al., GPT-2):
//   x2 = x + attention(norm_1(x));  y = x2 + mlp(norm_2(x2))
// and the head behind the last: logits = norm_f(x) w^T. What a forward keeps for its backward goes
// to the end of Saved, and the backward takes it from there; so several layers work like a stack.
#pragma once

#include <utility>

#include "core/objectives/objective.hpp"
#include "core/objectives/transformer/attention.hpp"
#include "core/objectives/transformer/cross_entropy.hpp"
#include "core/objectives/transformer/gelu.hpp"
#include "core/objectives/transformer/layer_norm.hpp"
#include "core/objectives/transformer/linear.hpp"
#include "core/objectives/transformer/parameters.hpp"

namespace pipewright::transformer {

/// Sequences that go through the model together: n of t tokens each.
struct Tokens {
  Index n, t;
  Index count() const { return n * t; }
};

template <class T>
Tensor new_tensor(Index rows, Index columns) {
  return Tensor(dtype_of<T>, {rows, columns});
}

/// Puts a new tensor [rows, columns] at the end of `saved`; gives its numbers.
template <class T>
T* keep(Saved& saved, Index rows, Index columns) {
  saved.tensors.push_back(new_tensor<T>(rows, columns));
  return saved.tensors.back().data<T>();
}

/// What goes from stage to stage, [n, t, d].
template <class T>
Tensor new_activation(Tokens tokens, Index d) {
  return Tensor(dtype_of<T>, {tokens.n, tokens.t, d});
}

inline Tensor take_last(Saved& saved) {
  Tensor tensor = std::move(saved.tensors.back());
  saved.tensors.pop_back();
  return tensor;
}

/// y [m, d] of x [m, d] for m = n t tokens.
template <class T>
Tensor layer_forward(const LayerParameters<const T>& w, Tensor x, Saved& saved,
                     const ModelSizes& sizes, Tokens tokens) {
  const Index m = tokens.count(), d = sizes.embedding;
  const AttentionShape shape{tokens.n, tokens.t, d, sizes.heads};
  saved.tensors.push_back(std::move(x));
  const T* in = saved.tensors.back().data<T>();
  T* stats_1 = keep<T>(saved, m, 2);
  T* norm_1 = keep<T>(saved, m, d);
  layer_norm_forward<T>(in, w.ln_1_weight, w.ln_1_bias, norm_1, stats_1, m, d);
  T* qkv = keep<T>(saved, m, 3 * d);
  linear_forward<T>(norm_1, w.c_attn_weight, w.c_attn_bias, qkv, m, d, 3 * d);
  T* p = keep<T>(saved, tokens.n * sizes.heads, tokens.t * tokens.t);
  T* heads = keep<T>(saved, m, d);
  attention_forward<T>(qkv, p, heads, shape);
  T* x2 = keep<T>(saved, m, d);
  array(x2, m * d) = array(in, m * d);
  linear_forward<T>(heads, w.c_proj_weight, w.c_proj_bias, x2, m, d, d, true);

  T* stats_2 = keep<T>(saved, m, 2);
  T* norm_2 = keep<T>(saved, m, d);
  layer_norm_forward<T>(x2, w.ln_2_weight, w.ln_2_bias, norm_2, stats_2, m, d);
  T* hidden = keep<T>(saved, m, 4 * d);
  linear_forward<T>(norm_2, w.mlp_0_weight, w.mlp_0_bias, hidden, m, d, 4 * d);
  Tensor gelu = new_tensor<T>(m, 4 * d);
  gelu_forward<T>(hidden, gelu.data<T>(), m * 4 * d);
  Tensor y = new_activation<T>(tokens, d);
  array(y.data<T>(), m * d) = array(x2, m * d);
  linear_forward<T>(gelu.data<T>(), w.mlp_2_weight, w.mlp_2_bias, y.data<T>(), m, 4 * d, d, true);
  return y;
}

/// dx [m, d] of dy [m, d], in the same storage. `dw` is null when the weights' gradient is not
/// wanted.
template <class T>
Tensor layer_backward(const LayerParameters<const T>& w, Saved& saved, Tensor dy,
                      const LayerParameters<T>* dw, const ModelSizes& sizes, Tokens tokens) {
  const Index m = tokens.count(), d = sizes.embedding;
  const AttentionShape shape{tokens.n, tokens.t, d, sizes.heads};
  T* dx = dy.data<T>();  // of y, then with the mlp's share of x2, at last of x
  Tensor d_branch = new_tensor<T>(m, d);
  T* branch = d_branch.data<T>();

  {
    Tensor hidden = take_last(saved), norm_2 = take_last(saved), stats_2 = take_last(saved);
    const Tensor x2 = take_last(saved);
    Tensor d_hidden = new_tensor<T>(m, 4 * d);
    linear_backward_input<T>(w.mlp_2_weight, dx, d_hidden.data<T>(), m, 4 * d, d);
    gelu_backward<T>(hidden.data<T>(), d_hidden.data<T>(), m * 4 * d);
    linear_backward_input<T>(w.mlp_0_weight, d_hidden.data<T>(), branch, m, d, 4 * d);
    if (dw != nullptr) {
      linear_backward_weights<T>(hidden.data<T>(), dx, dw->mlp_2_weight, dw->mlp_2_bias, m, 4 * d,
                                 d);
      linear_backward_weights<T>(norm_2.data<T>(), d_hidden.data<T>(), dw->mlp_0_weight,
                                 dw->mlp_0_bias, m, d, 4 * d);
    }
    layer_norm_backward<T>(x2.data<T>(), w.ln_2_weight, stats_2.data<T>(), branch, dx,
                           dw == nullptr ? nullptr : dw->ln_2_weight,
                           dw == nullptr ? nullptr : dw->ln_2_bias, m, d);
  }

  const Tensor heads = take_last(saved), p = take_last(saved), qkv = take_last(saved);
  const Tensor norm_1 = take_last(saved), stats_1 = take_last(saved), x = take_last(saved);
  linear_backward_input<T>(w.c_proj_weight, dx, branch, m, d, d);
  Tensor d_qkv = new_tensor<T>(m, 3 * d);
  Tensor d_p = new_tensor<T>(tokens.t, tokens.t);
  attention_backward<T>(qkv.data<T>(), p.data<T>(), branch, d_qkv.data<T>(), d_p.data<T>(), shape);
  linear_backward_input<T>(w.c_attn_weight, d_qkv.data<T>(), branch, m, d, 3 * d);
  if (dw != nullptr) {
    linear_backward_weights<T>(heads.data<T>(), dx, dw->c_proj_weight, dw->c_proj_bias, m, d, d);
    linear_backward_weights<T>(norm_1.data<T>(), d_qkv.data<T>(), dw->c_attn_weight,
                               dw->c_attn_bias, m, d, 3 * d);
  }
  layer_norm_backward<T>(x.data<T>(), w.ln_1_weight, stats_1.data<T>(), branch, dx,
                         dw == nullptr ? nullptr : dw->ln_1_weight,
                         dw == nullptr ? nullptr : dw->ln_1_bias, m, d);
  return dy;
}

/// The logits [m, vocabulary] of x [m, d].
template <class T>
Tensor head_forward(const HeadParameters<const T>& w, Tensor x, Saved& saved,
                    const ModelSizes& sizes, Tokens tokens) {
  const Index m = tokens.count(), d = sizes.embedding;
  saved.tensors.push_back(std::move(x));
  const T* in = saved.tensors.back().data<T>();
  T* stats = keep<T>(saved, m, 2);
  T* norm = keep<T>(saved, m, d);
  layer_norm_forward<T>(in, w.ln_f_weight, w.ln_f_bias, norm, stats, m, d);
  Tensor logits = new_tensor<T>(m, sizes.vocabulary);
  linear_forward<T>(norm, w.lm_head_weight, nullptr, logits.data<T>(), m, d, sizes.vocabulary);
  return logits;
}

/// dx [m, d] of d_logits [m, vocabulary]; `dw` as above.
template <class T>
Tensor head_backward(const HeadParameters<const T>& w, Saved& saved, const Tensor& d_logits,
                     const HeadParameters<T>* dw, const ModelSizes& sizes, Tokens tokens) {
  const Index m = tokens.count(), d = sizes.embedding;
  const Tensor norm = take_last(saved), stats = take_last(saved), x = take_last(saved);
  Tensor d_norm = new_tensor<T>(m, d);
  linear_backward_input<T>(w.lm_head_weight, d_logits.data<T>(), d_norm.data<T>(), m, d,
                           sizes.vocabulary);
  if (dw != nullptr) {
    linear_backward_weights<T>(norm.data<T>(), d_logits.data<T>(), dw->lm_head_weight, nullptr, m,
                               d, sizes.vocabulary);
  }
  Tensor dx = new_activation<T>(tokens, d);
  array(dx.data<T>(), m * d).setZero();
  layer_norm_backward<T>(x.data<T>(), w.ln_f_weight, stats.data<T>(), d_norm.data<T>(),
                         dx.data<T>(), dw == nullptr ? nullptr : dw->ln_f_weight,
                         dw == nullptr ? nullptr : dw->ln_f_bias, m, d);
  return dx;
}

}  // namespace pipewright::transformer
