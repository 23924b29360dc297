// Actions per second of making and simulating schedules. build/release/bench/bench_simulate
#include <benchmark/benchmark.h>

#include "core/schedule/kind.hpp"
#include "core/sim/metrics.hpp"
#include "core/sim/timeline.hpp"

namespace pipewright {
namespace {

std::unique_ptr<ScheduleSource> pipedream(int stages, std::int64_t microbatches,
                                          const char* order) {
  Value parameters = Value::map();
  parameters.set("stages", stages);
  parameters.set("microbatches", microbatches);
  parameters.set("order", order);
  static const CostModel cost;
  static const LinkModel link;
  return ScheduleRegistry::instance().at("pipedream").make(parameters, {cost, link, 0, 0});
}

/// simulate() of a strict schedule, whose generator costs next to nothing.
void simulate_pipedream(benchmark::State& state) {
  const int stages = static_cast<int>(state.range(0));
  const std::int64_t microbatches = 600'000 / stages;
  std::int64_t actions = 0;
  for (auto _ : state) {
    Simulator simulator(pipedream(stages, microbatches, "strict"), {}, {});
    while (simulator.next()) ++actions;
  }
  state.SetItemsProcessed(actions);
}
BENCHMARK(simulate_pipedream)->RangeMultiplier(4)->Range(4, 1024)->Unit(benchmark::kMillisecond);

/// The same with the greedy rule unrolled too.
void make_and_simulate_pipedream(benchmark::State& state) {
  const int stages = static_cast<int>(state.range(0));
  const std::int64_t microbatches = 600'000 / stages;
  std::int64_t actions = 0;
  for (auto _ : state) {
    Simulator simulator(pipedream(stages, microbatches, "greedy"), {}, {});
    while (simulator.next()) ++actions;
  }
  state.SetItemsProcessed(actions);
}
BENCHMARK(make_and_simulate_pipedream)
    ->RangeMultiplier(4)
    ->Range(4, 1024)
    ->Unit(benchmark::kMillisecond);

/// With staleness, delay and stash of every action.
void metrics_of_pipedream(benchmark::State& state) {
  const int stages = static_cast<int>(state.range(0));
  std::int64_t actions = 0;
  for (auto _ : state) {
    Simulator simulator(pipedream(stages, 120'000 / stages, "strict"), {}, {});
    TimelineMetrics metrics(simulator.header());
    while (const auto entry = simulator.next()) metrics.add(*entry);
    actions += metrics.actions();
  }
  state.SetItemsProcessed(actions);
}
BENCHMARK(metrics_of_pipedream)->RangeMultiplier(4)->Range(4, 256)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace pipewright

BENCHMARK_MAIN();
