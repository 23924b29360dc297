// Making schedules in tests.
#pragma once

#include <string>

#include "core/schedule/kind.hpp"
#include "core/sim/timeline.hpp"

namespace pipewright {

inline std::unique_ptr<ScheduleSource> make_schedule(const std::string& kind, Value parameters,
                                                     const CostModel& cost = {},
                                                     const LinkModel& link = {},
                                                     std::int64_t batches = 0) {
  const ScheduleKind& entry = ScheduleRegistry::instance().at(kind);
  const Value checked =
      check_params(ParamSpec::group_of(kind, "", entry.parameters), parameters, kind);
  return entry.make(checked, {cost, link, 0, batches});
}

inline std::unique_ptr<ScheduleSource> make_pipedream(int stages, std::int64_t microbatches,
                                                      std::int64_t cap = 0,
                                                      const CostModel& cost = {},
                                                      const LinkModel& link = {}) {
  Value parameters = Value::map();
  parameters.set("stages", stages);
  parameters.set("microbatches", microbatches);
  if (cap > 0) parameters.set("in_flight_max", cap);
  return make_schedule("pipedream", parameters, cost, link);
}

inline Tick makespan_of(const Timeline& timeline) {
  return timeline.entries.empty() ? Tick(0) : timeline.entries.back().end;
}

}  // namespace pipewright
