// transformer: a language model with causal attention, cut into stages; its loss is the mean cross
// entropy in nats per token.
#include "core/objectives/transformer/load.hpp"
#include "core/objectives/transformer/problem.hpp"

namespace pipewright {

namespace {

const Registration<ObjectiveKind> registration{
    {.kind = "transformer",
     .summary = "Language model: embeddings, layers of causal attention and MLP, a head; float32, "
                "nats per token.",
     .parameters = transformer::parameters(),
     .default_init = DefaultInit::random,
     .default_observe = DefaultObserve::never,
     .load =
         [](const Value& parameters, const ObjectiveContext& context) {
           return transformer::make_objective<float>(transformer::load(parameters, context));
         },
     .generator = transformer::make_generator}};

}  // namespace

}  // namespace pipewright
