#include "core/sim/link.hpp"

#include "core/sim/cost.hpp"

namespace pipewright {

ParamSpec LinkModel::spec() {
  return ParamSpec::group_of(
      "link", "How long messages between neighbouring stages are on their way.",
      {ParamSpec::time_of("latency", "From the end of an action to when the next stage can use it.")
           .or_default(0)});
}

LinkModel LinkModel::from(const Value& parameters) {
  const Value* latency = parameters.find("latency");
  return latency == nullptr ? LinkModel() : LinkModel(tick_from(*latency));
}

}  // namespace pipewright
