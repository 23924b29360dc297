// What a schedule plug-in declares. One .cpp file in core/schedules with a
// Registration<ScheduleKind>.
#pragma once

#include <functional>
#include <memory>

#include "core/base/registry.hpp"
#include "core/schedule/batch_order.hpp"
#include "core/schedule/known.hpp"
#include "core/schedule/schedule.hpp"
#include "core/sim/cost.hpp"
#include "core/sim/link.hpp"

namespace pipewright {

/// What schedules are made for. Greedy ones unroll their rule under the cost and link model.
struct ScheduleContext {
  const CostModel& cost;
  const LinkModel& link;
  std::uint64_t seed = 0;
  std::int64_t batches = 0;  // of the data; 0: as many as there are microbatches
  bool shuffle = false;      // another order of the batches in every epoch, from the seed

  BatchOrder batch_order() const {
    return BatchOrder(batches, shuffle ? std::optional(seed) : std::nullopt);
  }
};

struct ScheduleKind {
  std::string kind;
  std::string summary;
  std::vector<ParamSpec> parameters;
  /// The number of stages and rows that the parameters ask for, and other sizes of the header.
  std::function<ScheduleHeader(const Value& parameters, std::uint64_t seed)> header;
  /// Throws ParamError (path relative to the schedule's own map) for parameters that do not fit
  /// each other.
  std::function<std::unique_ptr<ScheduleSource>(const Value& parameters,
                                                const ScheduleContext& context)>
      make;
  /// The known results that hold for these parameters in this context, to be shown beside what is
  /// measured (core/theory/formulas.hpp). May be empty: none is known.
  std::function<std::vector<KnownResult>(const Value& parameters, const ScheduleContext& context)>
      known = {};
};

// Parameters that most kinds have.
inline ParamSpec stages_parameter() {
  return ParamSpec::integer_of("stages", "Stages of the pipeline.")
      .at_least(1)
      .at_most(65536)
      .needed();
}
inline ParamSpec microbatches_parameter() {
  return ParamSpec::integer_of("microbatches", "Microbatches in all.")
      .at_least(1)
      .at_most(1e15)
      .needed();
}

using ScheduleRegistry = Registry<ScheduleKind>;

}  // namespace pipewright
