// Timelines and delays against the paper authors' simulator (../shared/golden/README.md).
#include <yaml-cpp/yaml.h>

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

TEST(GoldenTimelines, PipeDreamGivesTheSimulatorsRows) {
  PIPEWRIGHT_NEEDS_SHARED("golden/timelines.json");
  int cases = 0;
  const YAML::Node golden = YAML::LoadFile(shared_path("golden/timelines.json"));
  for (const YAML::Node& one : golden["cases"]) {
    if (one["schedule"].as<std::string>() != "pipedream") continue;
    const auto timeline =
        simulate(make_pipedream(one["stages"].as<int>(), one["microbatches"].as<int>(),
                                one["max_in_flight"].as<int>()),
                 {}, {});
    EXPECT_EQ(rows_of(timeline), one["rows"].as<std::vector<std::string>>())
        << "S = " << one["stages"] << ", cap " << one["max_in_flight"];
    ++cases;
  }
  EXPECT_GE(cases, 8);
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
