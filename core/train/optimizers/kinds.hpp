// The kinds of optimizers, one file each; the registry (optimizer.cpp) gathers them.
#pragma once

#include "core/train/optimizer.hpp"

namespace pipewright {

/// Stochastic gradient descent as PyTorch defines it (torch.optim.SGD), so that numbers compare:
///   g <- gradient + weight_decay w;  v <- momentum v + g (v = g at first);
///   w <- w - rate v, or with Nesterov w <- w - rate (g + momentum v).
OptimizerKind sgd_kind();

/// Adam with decoupled weight decay as PyTorch defines it (torch.optim.AdamW): algorithm 2 of
/// Loshchilov and Hutter, "Decoupled Weight Decay Regularization" (ICLR 2019), with the rate on the
/// decay too. With t = 1, 2, ... the block's updates and elementwise squares and roots:
///   m <- beta1 m + (1 - beta1) g;  v <- beta2 v + (1 - beta2) g^2;
///   w <- (1 - rate weight_decay) w
///        - rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon).
OptimizerKind adamw_kind();

}  // namespace pipewright
