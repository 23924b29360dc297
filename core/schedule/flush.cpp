#include "core/schedule/flush.hpp"

#include <algorithm>

#include "core/theory/formulas.hpp"

namespace pipewright {

namespace {

std::int64_t group_of(const Value& parameters) {
  const std::int64_t microbatches = parameters.at("microbatches").as_integer();
  const Value* accumulate = parameters.find("accumulate");
  return accumulate == nullptr ? microbatches : std::min(microbatches, accumulate->as_integer());
}

ScheduleHeader header_of(const std::string& name, const Value& parameters, std::uint64_t seed) {
  ScheduleHeader header;
  header.name = name;
  header.stages = static_cast<int>(parameters.at("stages").as_integer());
  header.microbatches = parameters.at("microbatches").as_integer();
  const std::int64_t group = group_of(parameters);
  header.updates = (header.microbatches + group - 1) / group * header.stages;
  header.seed = seed;
  return header;
}

/// Of the paper's time model, with one group: a flush for each makes the rest.
std::vector<KnownResult> known_of(const ScheduleHeader& header, std::int64_t group,
                                  const ScheduleContext& context) {
  if (!context.cost.is_unit() || context.link.uniform() != Tick(0)) return {};
  const std::int64_t n = header.microbatches;
  const auto makespan = [&](std::int64_t microbatches) {
    return microbatches == 0 ? 0 : theory::pipeline_makespan(microbatches, header.stages);
  };
  const std::int64_t whole = n / group;
  const auto ticks = static_cast<double>(whole * makespan(group) + makespan(n % group));
  if (whole > 1 || n % group > 0) {
    return {KnownResult::of("makespan, ticks", "2 (n + S - 1), added up over the groups of n",
                            "makespan_ticks", ticks)};
  }
  return {KnownResult::of("makespan, ticks", "2 (N + S - 1)", "makespan_ticks", ticks),
          KnownResult::of("bubble", "(S - 1) / (N + S - 1)", "bubble",
                          theory::pipeline_bubble(n, header.stages))};
}

}  // namespace

ScheduleKind flush_kind(std::string name, std::string summary, WarmUp warm_up) {
  ScheduleKind kind;
  kind.kind = name;
  kind.summary = std::move(summary);
  kind.parameters = {stages_parameter(), microbatches_parameter(),
                     ParamSpec::integer_of("accumulate",
                                           "Microbatches per update, which takes their mean "
                                           "gradient at the flush; by default all.",
                                           "microbatches")
                         .at_least(1)};
  kind.header = [name](const Value& parameters, std::uint64_t seed) {
    return header_of(name, parameters, seed);
  };
  kind.make = [name, warm_up = std::move(warm_up)](const Value& parameters,
                                                   const ScheduleContext& context) {
    const ScheduleHeader header = header_of(name, parameters, context.seed);
    const std::int64_t group = group_of(parameters);
    return std::make_unique<StrictSource>(
        header, StrictCounts{warm_up(header.stages, group), group, true}, context);
  };
  kind.known = [name](const Value& parameters, const ScheduleContext& context) {
    return known_of(header_of(name, parameters, context.seed), group_of(parameters), context);
  };
  return kind;
}

}  // namespace pipewright
