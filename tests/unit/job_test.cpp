// What keys of a job mean for its runs: tick, shuffle, noise.
#include <cmath>
#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "core/schedule/csv.hpp"
#include "tests/support/runs.hpp"
#include "tests/support/schedules.hpp"

namespace pipewright {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t batches = 10;

Value small_job() {
  return small_quadratic_job(43, 35);
}

std::string fault_of(const Value& job) {
  try {
    Recorder recorder;
    run_job(job, recorder);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::vector<double> weights_of(const Value& job) {
  Recorder recorder;
  const RunResult result = run_job(job, recorder);
  const double* w = result.weights.data<double>();
  return {w, w + result.weights.elements()};
}

TEST(Tick, MakesNanosecondsOfTicksBesideDurations) {
  Value mixed = small_job();
  set_path(mixed, "tick", "2ms");
  set_path(mixed, "cost.forward", Value(Value::List{1, "2ms", 1}));
  set_path(mixed, "link.latency", "500us");
  set_path(mixed, "link.overrides",
           Value(Value::List{Value(Value::Map{{"from", 0}, {"to", 1}, {"latency", 3}})}));
  set_path(mixed, "observe.objective.every_ticks", 4);
  Value durations = small_job();
  for (const char* kind : {"forward", "backward"}) {
    set_path(durations, std::string("cost.") + kind, "2ms");
  }
  set_path(durations, "link.latency", "500us");
  set_path(durations, "link.overrides",
           Value(Value::List{Value(Value::Map{{"from", 0}, {"to", 1}, {"latency", "6ms"}})}));
  set_path(durations, "observe.objective.every_ticks", 8'000'000);
  Recorder a, b;
  run_job(mixed, a);
  run_job(durations, b);
  EXPECT_EQ(a.timeline, b.timeline);
  EXPECT_EQ(a.curve, b.curve);
  EXPECT_EQ(a.curve[1].tick, 8'000'000);
  // A job that was checked can be checked again: it travels that way.
  EXPECT_EQ(to_json(check_job(check_job(mixed))), to_json(check_job(mixed)));
}

TEST(Tick, RefusesWhatIsNoDuration) {
  Value job = small_job();
  set_path(job, "tick", "soon");
  EXPECT_THAT(fault_of(job), HasSubstr("tick: expected a duration of at least 1ns (\"1ms\"), "
                                       "found 'soon'"));
  set_path(job, "tick", "0ms");
  EXPECT_THAT(fault_of(job), HasSubstr("tick: expected a duration"));
  set_path(job, "tick", "1s");
  set_path(job, "cost.forward", std::int64_t{1} << 40);
  EXPECT_THAT(fault_of(job), HasSubstr("tick: makes 'forward' of 1099511627776 ticks longer"));
}

/// Batches of the forwards of stage 0, in order.
std::vector<std::int64_t> batches_of(const Value& job) {
  Recorder recorder;
  run_job(job, recorder);
  std::vector<std::int64_t> order;
  for (const TimelineEntry& entry : recorder.timeline) {
    if (entry.row == Row(0) && entry.action.kind == ActionKind::forward) {
      order.push_back(entry.action.batch.value);
    }
  }
  return order;
}

TEST(Shuffle, EveryEpochIsAnotherPermutationOfAllBatches) {
  Value job = small_job();
  set_path(job, "shuffle", true);
  const auto order = batches_of(job);
  ASSERT_EQ(order.size(), 35u);
  std::set<std::vector<std::int64_t>> epochs;
  for (auto at = order.begin(); order.end() - at >= batches; at += batches) {
    EXPECT_EQ(std::set<std::int64_t>(at, at + batches).size(), static_cast<std::size_t>(batches));
    epochs.insert({at, at + batches});
  }
  EXPECT_EQ(epochs.size(), 3u);
  EXPECT_EQ(batches_of(job), order);
  set_path(job, "seed", 1);
  EXPECT_NE(batches_of(job), order);
}

TEST(Shuffle, TheOrderDoesNotDependOnWhatWasAskedForBefore) {
  BatchOrder forward(7, 3), backward(7, 3);
  std::vector<Batch> a, b;
  for (std::int64_t m = 0; m < 50; ++m) a.push_back(forward.of(Microbatch(m)));
  for (std::int64_t m = 49; m >= 0; --m) b.insert(b.begin(), backward.of(Microbatch(m)));
  EXPECT_EQ(a, b);
}

TEST(Shuffle, AllSchedulesOfRoundsAndFlushesTakeTheSameOrder) {
  Value job = small_job();
  set_path(job, "shuffle", true);
  const auto order = batches_of(job);
  Value strict = job;
  set_path(strict, "schedule.pipedream.order", "strict");
  EXPECT_EQ(batches_of(strict), order);
  for (const char* kind : {"fill_drain", "one_f_one_b", "sequential", "local_sgd"}) {
    Value other = job;
    Value parameters = pipedream_parameters(3, 35);
    if (std::string(kind) == "local_sgd") {
      parameters.set("replicas", 2);
      parameters.set("local_steps", 3);
    }
    other.set("schedule", one_of(kind, parameters));
    EXPECT_EQ(batches_of(other), order) << kind;
  }
}

TEST(Shuffle, RpdWithPipeDreamsDrawsIsStillPipeDream) {
  Value pipedream = small_job();
  set_path(pipedream, "shuffle", true);
  Value rpd = pipedream;
  Value parameters = Value::map();
  parameters.set("stages", 3);
  parameters.set("updates", 105);
  parameters.set("delays", "pipedream");
  rpd.set("schedule", one_of("rpd", parameters));
  EXPECT_EQ(weights_of(rpd), weights_of(pipedream));
}

TEST(Shuffle, IsRefusedWhereAFileGivesTheBatches) {
  const std::string path = ::testing::TempDir() + "pipewright_shuffle.csv";
  Value job = small_job();
  {
    std::ofstream file(path);
    write_csv(file, collect(*make_schedule("pipedream", pipedream_parameters(3, 5))));
  }
  job.set("schedule", one_of("file", Value(Value::Map{{"path", path}})));
  EXPECT_EQ(fault_of(job), "");
  set_path(job, "shuffle", true);
  EXPECT_THAT(fault_of(job), HasSubstr("the file gives every batch; leave out `shuffle`"));
  std::remove(path.c_str());
}

TEST(Noise, IsAddedToEveryEntryOfABlockGradientWithItsDeviation) {
  Value job = small_job();
  constexpr std::int64_t parameters = 4000;
  set_path(job, "objective.quadratic.generate.parameters", parameters);
  job.set("schedule", one_of("sequential", pipedream_parameters(3, 1)));
  set_path(job, "optimizer.sgd.learning_rate", 0.5);
  const auto plain = weights_of(job);
  set_path(job, "noise.gradient", 3.0);
  const auto noisy = weights_of(job);
  EXPECT_EQ(weights_of(job), noisy);
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const double noise = (plain[i] - noisy[i]) / 0.5;
    sum += noise;
    squares += noise * noise;
  }
  // Five standard errors of the mean, and of the deviation.
  EXPECT_NEAR(sum / parameters, 0, 5 * 3.0 / std::sqrt(parameters));
  EXPECT_NEAR(std::sqrt(squares / parameters), 3.0, 5 * 3.0 / std::sqrt(2.0 * parameters));
  set_path(job, "seed", 1);
  EXPECT_NE(weights_of(job), noisy);
}

TEST(Noise, DependsOnStageAndMicrobatchAndNotOnThePlacement) {
  Value job = small_job();
  set_path(job, "noise.gradient", 0.5);
  Value parameters = pipedream_parameters(3, 36);
  parameters.set("replicas", 4);
  parameters.set("local_steps", 3);
  job.set("schedule", one_of("local_sgd", parameters));
  Value spread = job;
  set_path(spread, "schedule.local_sgd.placement", "spread");
  EXPECT_EQ(weights_of(job), weights_of(spread));
}

}  // namespace
}  // namespace pipewright
