// Plain SGD: nothing overlaps, so nothing is stale.
#include "core/schedule/strict.hpp"

namespace pipewright {
namespace {

ScheduleHeader header_from(const Value& parameters, std::uint64_t seed) {
  ScheduleHeader header;
  header.name = "sequential";
  header.stages = static_cast<int>(parameters.at("stages").as_integer());
  header.microbatches = parameters.at("microbatches").as_integer();
  header.updates = header.microbatches * header.stages;
  header.seed = seed;
  return header;
}

/// One microbatch at a time: S forwards and S backwards, and nothing is stale.
std::vector<KnownResult> known_results(const Value& parameters, const ScheduleContext& context) {
  const ScheduleHeader header = header_from(parameters, context.seed);
  const auto stages = static_cast<std::size_t>(header.stages);
  std::vector<KnownResult> known{{"steady staleness of stage s, versions", "0",
                                  "per_stage.staleness_versions.steady.mean",
                                  std::vector<double>(stages, 0.0)}};
  if (context.cost.is_unit() && context.link.uniform() == Tick(0)) {
    known.push_back(KnownResult::of("makespan, ticks", "2 N S", "makespan_ticks",
                                    static_cast<double>(2 * header.microbatches * header.stages)));
  }
  return known;
}

const Registration<ScheduleKind> registration{
    {.kind = "sequential",
     .summary = "Plain SGD: one microbatch after the other goes through all stages and back.",
     .parameters = {stages_parameter(), microbatches_parameter()},
     .header = header_from,
     .make =
         [](const Value& parameters, const ScheduleContext& context) {
           const ScheduleHeader header = header_from(parameters, context.seed);
           const std::vector<std::int64_t> no_warm_up(static_cast<std::size_t>(header.stages), 0);
           // Groups of one: stage 0 waits for the backward before it begins the next.
           return std::make_unique<StrictSource>(header, StrictCounts{no_warm_up, 1, false},
                                                 context);
         },
     .known = known_results}};

}  // namespace
}  // namespace pipewright
