// Timelines and delays against the paper authors' simulator (../shared/golden/README.md).
#include <yaml-cpp/yaml.h>

#include <map>

#include "core/schedule/versions.hpp"
#include "core/sim/rows.hpp"
#include "tests/support/schedules.hpp"
#include "tests/support/shared.hpp"

namespace pipewright {
namespace {

VersionTracker track(std::unique_ptr<ScheduleSource> source,
                     std::function<void(const UpdateFacts&)> callback = {}) {
  Simulator simulator(std::move(source), {}, {});
  VersionTracker tracker(simulator.header());
  tracker.on_update(std::move(callback));
  while (const auto entry = simulator.next()) tracker.add(entry->row, entry->action);
  return tracker;
}

Value pipedream(int stages, std::int64_t microbatches) {
  Value parameters = Value::map();
  parameters.set("stages", stages);
  parameters.set("microbatches", microbatches);
  return parameters;
}

std::unique_ptr<ScheduleSource> source_of(const YAML::Node& one) {
  Value parameters = Value::map();
  for (const auto& [key, name] : {std::pair{"stages", "stages"},
                                  {"microbatches", "microbatches"},
                                  {"max_in_flight", "in_flight_max"},
                                  {"replicas", "replicas"},
                                  {"local_steps", "local_steps"}}) {
    if (one[key]) parameters.set(name, one[key].as<int>());
  }
  return make_schedule(one["schedule"].as<std::string>(), parameters);
}

TEST(GoldenTimelines, EverySchedulesRowsAreTheSimulators) {
  PIPEWRIGHT_NEEDS_SHARED("golden/timelines.json");
  std::map<std::string, int> cases;
  const YAML::Node golden = YAML::LoadFile(shared_path("golden/timelines.json"));
  for (const YAML::Node& one : golden["cases"]) {
    EXPECT_EQ(rows_of(simulate(source_of(one), {}, {})), one["rows"].as<std::vector<std::string>>())
        << one["schedule"] << ", S = " << one["stages"] << ", N = " << one["microbatches"];
    ++cases[one["schedule"].as<std::string>()];
  }
  EXPECT_GE(cases["pipedream"], 8);
  EXPECT_GE(cases["fill_drain"], 4);
  EXPECT_GE(cases["local_sgd"], 8);
}

TEST(GoldenTimelines, DelaysOfTheSecondHalfOfTheUpdates) {
  PIPEWRIGHT_NEEDS_SHARED("golden/pipedream_delays.csv");
  int compared = 0;
  for (const auto& row : read_numbers(shared_path("golden/pipedream_delays.csv"))) {
    const int stages = static_cast<int>(row[0]);
    if (stages > 40) continue;
    const VersionTracker tracker = track(make_pipedream(stages, static_cast<std::int64_t>(row[1])));
    const Histogram& delay = tracker.delay().steady;
    EXPECT_DOUBLE_EQ(delay.mean(), row[2]) << "S = " << stages;
    EXPECT_EQ(delay.max(), static_cast<std::int64_t>(row[4])) << "S = " << stages;
    ++compared;
  }
  EXPECT_GE(compared, 39);
}

TEST(GoldenTimelines, EveryDelayOfFourStagesAndFortyMicrobatches) {
  PIPEWRIGHT_NEEDS_SHARED("golden/pipedream_delays_s4_n40.csv");
  const auto golden = read_numbers(shared_path("golden/pipedream_delays_s4_n40.csv"));
  std::size_t k = 0;
  track(make_pipedream(4, 40), [&](const UpdateFacts& facts) {
    ASSERT_LT(k, golden.size());
    for (std::size_t s = 0; s < 4; ++s) {
      EXPECT_EQ((*facts.delays)[s], static_cast<std::int64_t>(golden[k][s]))
          << "update " << k << ", block " << s;
    }
    ++k;
  });
  EXPECT_EQ(k, golden.size());
}

// "Demystifying Pipeline Parallelism" (arXiv 2606.03498): the largest delay of steady PipeDream is
// floor(S^2 - S/2), with start-up floor(5 S^2 / 4 - S); the makespan of N microbatches 2 (N + S -
// 1).
TEST(KnownResults, DelaysAndMakespanOfPipeDream) {
  for (std::int64_t s = 2; s <= 24; ++s) {
    const std::int64_t microbatches = 10 * s;
    const VersionTracker tracker = track(make_pipedream(static_cast<int>(s), microbatches));
    EXPECT_EQ(tracker.delay().steady.max(), (2 * s * s - s) / 2) << "S = " << s;
    EXPECT_EQ(tracker.delay().max(), (5 * s * s - 4 * s) / 4) << "S = " << s;
    const auto timeline = simulate(make_pipedream(static_cast<int>(s), microbatches), {}, {});
    EXPECT_EQ(makespan_of(timeline), Tick(2 * (microbatches + s - 1))) << "S = " << s;
  }
}

// A round of LocalSGD takes 2 [max(R, S) (H - 1) + R + S - 1] ticks.
TEST(KnownResults, RoundTimeOfLocalSgd) {
  for (const int stages : {1, 2, 3, 5, 8}) {
    for (const int replicas : {1, 2, 3, 5, 8, 11}) {
      for (const int steps : {1, 2, 3, 7}) {
        const int rounds = 3;
        Value parameters = Value::map();
        parameters.set("stages", stages);
        parameters.set("replicas", replicas);
        parameters.set("local_steps", steps);
        parameters.set("microbatches", replicas * steps * rounds);
        const auto timeline = simulate(make_schedule("local_sgd", parameters), {}, {});
        const int round = 2 * (std::max(replicas, stages) * (steps - 1) + replicas + stages - 1);
        EXPECT_EQ(makespan_of(timeline), Tick(rounds * round))
            << "S = " << stages << ", R = " << replicas << ", H = " << steps;
      }
    }
  }
}

// Link latency c per hop, strict order with warm-up S-1-s: (tF + tB) + 2 (S-1) c / S ticks per
// microbatch; with warm-up (S-1-s)(1 + 2c/(tF+tB)), where that is whole, tF + tB again, and the
// staleness grows by that factor (DESIGN.md section 4).
TEST(KnownResults, StrictOrderUnderLatency) {
  for (const int stages : {2, 3, 4, 8}) {
    for (const int c : {0, 1, 2, 3, 4, 8}) {
      for (const auto& [forward, backward] : {std::pair{1, 1}, {1, 2}, {2, 2}, {3, 5}}) {
        const CostModel cost{Tick(forward), Tick(backward)};
        const LinkModel link{Tick(c)};
        const auto strict = [&](std::int64_t microbatches, double factor) {
          Value parameters = pipedream(stages, microbatches);
          parameters.set("order", "strict");
          parameters.set("warm_up", factor);
          return make_schedule("pipedream", parameters, cost, link);
        };
        const auto makespan = [&](std::int64_t microbatches, double factor) {
          return makespan_of(simulate(strict(microbatches, factor), cost, link)).value;
        };
        // Between N and N + S k microbatches the start-up and the end cancel out.
        const std::int64_t n = 40 * stages;
        const std::int64_t more = 12 * stages;
        const std::int64_t busy = forward + backward;
        EXPECT_EQ(makespan(n + more, 1) - makespan(n, 1),
                  more * busy + 2 * (stages - 1) * c * (more / stages))
            << "S = " << stages << ", c = " << c << ", tF = " << forward << ", tB = " << backward;
        if (2 * c % busy != 0) continue;
        const double factor = 1 + 2.0 * c / static_cast<double>(busy);
        EXPECT_EQ(makespan(n + more, factor) - makespan(n, factor), more * busy)
            << "S = " << stages << ", c = " << c << ", warm-up hides the latency";
        Simulator simulator(strict(n, factor), cost, link);
        VersionTracker tracker(simulator.header());
        while (const auto entry = simulator.next()) tracker.add(entry->row, entry->action);
        for (int s = 0; s < stages; ++s) {
          EXPECT_EQ(static_cast<double>(
                        tracker.stages()[static_cast<std::size_t>(s)].staleness.steady.max()),
                    factor * (stages - 1 - s));
        }
      }
    }
  }
}

TEST(KnownResults, StalenessOfAStageIsTheNumberOfStagesAfterIt) {
  for (const int stages : {1, 2, 3, 5, 8}) {
    const VersionTracker tracker = track(make_pipedream(stages, 20 * stages));
    for (int s = 0; s < stages; ++s) {
      const Histogram& staleness = tracker.stages()[static_cast<std::size_t>(s)].staleness.steady;
      EXPECT_EQ(staleness.max(), stages - 1 - s);
      EXPECT_EQ(staleness.mean(), stages - 1 - s);
    }
  }
}

TEST(KnownResults, PeakStashIsBoundedByTheCapAndTheDistanceToTheLastStage) {
  for (const int stages : {1, 2, 4, 7}) {
    for (const int cap : {1, 2, stages, stages + 3, 3 * stages}) {
      const VersionTracker tracker = track(make_pipedream(stages, 12 * stages, cap));
      for (int s = 0; s < stages; ++s) {
        EXPECT_EQ(tracker.stages()[static_cast<std::size_t>(s)].stash_microbatches_max,
                  std::min(cap, 2 * (stages - s) - 1))
            << "S = " << stages << ", cap " << cap << ", stage " << s;
      }
    }
  }
}

}  // namespace
}  // namespace pipewright
