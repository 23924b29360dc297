// What happens at the syncs of a schedule with replicas. A schedule's CSV form does not hold it, so
// `file` has the same parameters.
#pragma once

#include "core/base/params.hpp"

namespace pipewright {

inline ParamSpec sync_parameter() {
  return ParamSpec::text_of("sync",
                            "free: a sync takes no time, as in the paper; ring: it is charged as a "
                            "ring all-reduce of each block over the links.",
                            {"free", "ring"})
      .or_default("free");
}

inline ParamSpec outer_parameter() {
  const auto step = [](double momentum) -> std::vector<ParamSpec> {
    return {ParamSpec::real_of("learning_rate", "Step size.").above(0).needed(),
            ParamSpec::real_of("momentum", "Share of the last step that is kept.")
                .at_least(0)
                .at_most(1)
                .or_default(momentum)};
  };
  return ParamSpec::one_of(
      "outer",
      "What a sync does with the average; without it the replicas are set to it. The outer "
      "gradient is the weights of the last sync minus the average (DiLoCo).",
      {ParamSpec::group_of("sgd", "A step of SGD.", step(0)),
       ParamSpec::group_of("nesterov", "A step of SGD with Nesterov's momentum.", step(0.9))});
}

}  // namespace pipewright
