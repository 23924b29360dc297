// Runs on the real clock: what they take is never less than asked, and the order that they took
// gives the same weights on the virtual clock.
#include <gmock/gmock.h>

#include <filesystem>
#include <map>
#include <tuple>

#include "core/base/text.hpp"
#include "core/schedule/csv.hpp"
#include "proto/codec/job_file.hpp"
#include "tests/mpi/pool_runs.hpp"
#include "tests/support/schedule_cases.hpp"

namespace pipewright {
namespace {

constexpr std::int64_t latency_ns = 200'000;
constexpr std::int64_t forward_ns = 50'000;
constexpr std::int64_t backward_ns = 100'000;

Value real_job(const ScheduleCase& one) {
  Value job = job_with(one);
  job.set("clock", "real");
  set_path(job, "link.latency", "200us");
  set_path(job, "cost.forward", "50us");
  set_path(job, "cost.backward", "100us");
  job.set("observe", parameters_from("{objective: {every_updates: 7}}"));
  return job;
}

struct Timed {
  std::int64_t start, end;
};
/// Of each action (stage, kind, microbatch) when it ran.
using Times = std::map<std::tuple<int, std::string, std::int64_t>, Timed>;

Times times_of(const std::string& folder) {
  Times times;
  std::istringstream in(bytes_of(folder + "/timeline.csv"));
  std::string line;
  std::getline(in, line);
  std::int64_t end_before = 0;
  while (std::getline(in, line)) {
    std::istringstream cells(line);
    std::string stage, kind, microbatch, replica, start, end;
    for (std::string* cell : {&stage, &kind, &microbatch, &replica, &start, &end}) {
      std::getline(cells, *cell, ',');
    }
    const Timed timed{std::stoll(start), std::stoll(end)};
    EXPECT_GE(timed.end, end_before) << "the global order is by the end: " << line;
    end_before = timed.end;
    times[{std::stoi(stage), kind, std::stoll(microbatch)}] = timed;
  }
  return times;
}

void expect_nothing_earlier_than_asked(const Times& times, int stages) {
  for (const auto& [what, timed] : times) {
    const auto& [stage, kind, microbatch] = what;
    const auto label = kind + std::to_string(microbatch) + " on stage " + std::to_string(stage);
    if (kind == "F") {
      EXPECT_GE(timed.end - timed.start, forward_ns) << label;
    }
    if (kind == "B") {
      EXPECT_GE(timed.end - timed.start, backward_ns) << label;
    }
    const int from = kind == "F" ? stage - 1 : stage + 1;
    if ((kind != "F" && kind != "B") || from < 0 || from == stages) continue;
    const auto input = times.find({from, kind, microbatch});
    if (input == times.end()) continue;
    EXPECT_GE(timed.start, input->second.end + latency_ns) << label;
  }
}

Schedule schedule_in(const std::string& folder) {
  std::istringstream in(bytes_of(folder + "/schedule.csv"));
  return read_csv(in, "schedule.csv");
}

/// The job along the order that the run in `folder` took, on the virtual clock.
Value replay_of(Value job, const std::string& folder) {
  Value file = Value::map();
  file.set("path", folder + "/schedule.csv");
  const Value* outer = job.at("schedule").as_map().front().second.find("outer");
  if (outer != nullptr) file.set("outer", *outer);
  job.set("clock", "virtual");
  job.set("schedule", one_of("file", file));
  return job;
}

void expect_a_real_run_that_can_be_replayed(const ScheduleCase& one, bool is_planned) {
  SCOPED_TRACE(name_of(one));
  const Value job = real_job(one);
  const TemporaryFolder folder;
  const auto result = run_on_ranks(job, folder / "real");
  if (!result) return;
  ASSERT_EQ(result->outcome, RunOutcome::succeeded) << result->message;
  EXPECT_EQ(result->summary.at("clock").as_text(), "real");
  EXPECT_GT(result->summary.at("planned_makespan_ticks").as_integer(), 0);
  const Schedule taken = schedule_in(folder / "real");
  expect_nothing_earlier_than_asked(times_of(folder / "real"), taken.header.stages);
  run_here(replay_of(job, folder / "real"), folder / "replay");
  const std::string weights = bytes_of((folder / "real") + "/weights.npy");
  EXPECT_FALSE(weights.empty());
  EXPECT_TRUE(weights == bytes_of((folder / "replay") + "/weights.npy")) << "weights differ";
  if (!is_planned) return;
  Value planned = job;
  planned.set("clock", "virtual");
  run_here(planned, folder / "planned");
  EXPECT_TRUE(bytes_of((folder / "real") + "/planned_timeline.csv") ==
              bytes_of((folder / "planned") + "/timeline.csv"))
      << "what was planned is not what the virtual clock gives";
  EXPECT_EQ(taken, schedule_in(folder / "planned")) << "it does not follow the plan";
  EXPECT_TRUE(weights == bytes_of((folder / "planned") + "/weights.npy")) << "weights differ";
}

TEST(RealClock, EveryScheduleFollowsItsPlanAndIsNeverEarly) {
  for (const char* kind : {"pipedream", "rpd", "local_sgd", "one_f_one_b", "sequential"}) {
    for (const ScheduleCase& one : cases_of(kind)) {
      expect_a_real_run_that_can_be_replayed(one, true);
    }
  }
}

TEST(RealClock, WhatStagesDecideByThemselvesCanBeReplayed) {
  for (const auto& [kind, parameters] : std::vector<std::pair<const char*, const char*>>{
           {"pipedream", "{stages: 4, microbatches: 33, in_flight_max: 6}"},
           {"pipedream", "{stages: 1, microbatches: 9}"},
           {"pipedream", "{stages: 7, microbatches: 3}"},
           {"rpd", "{stages: 4, updates: 60, delay_max: 14}"},
           {"rpd", "{stages: 3, updates: 50, delays: pipedream, in_flight_max: 9}"},
           {"rpd", "{stages: 5, updates: 40, delays: zero, in_flight_max: 1}"},
           {"local_sgd", "{stages: 4, replicas: 3, local_steps: 2, microbatches: 29}"},
           {"local_sgd",
            "{stages: 3, replicas: 4, local_steps: 2, microbatches: 30, placement: "
            "spread}"},
           {"local_sgd",
            "{stages: 2, replicas: 2, local_steps: 3, microbatches: 25, placement: "
            "spread, outer: {nesterov: {learning_rate: 0.7}}}"}}) {
    Value online = parameters_from(parameters);
    online.set("order", "online");
    expect_a_real_run_that_can_be_replayed({kind, online}, false);
  }
}

// Longer than the windows in which work is handed out, and every stage as fast as it can. With one
// update of RPD in flight its first stage falls far behind its plan, which has no such wait.
TEST(RealClock, ALongRunGoesThroughManyWindows) {
  for (const auto& [kind, parameters] : std::vector<std::pair<const char*, const char*>>{
           {"pipedream", "{stages: 3, microbatches: 1500}"},
           {"pipedream", "{stages: 3, microbatches: 1500, order: online}"},
           {"rpd", "{stages: 3, updates: 2500, delays: zero, in_flight_max: 1, order: online}"}}) {
    Value job = job_with({kind, parameters_from(parameters)});
    job.set("clock", "real");
    job.set("observe", parameters_from("{objective: {every_updates: 100}}"));
    const TemporaryFolder folder;
    const auto result = run_on_ranks(job, folder / "real");
    if (!result) continue;
    ASSERT_EQ(result->outcome, RunOutcome::succeeded) << parameters << ": " << result->message;
    run_here(replay_of(job, folder / "real"), folder / "replay");
    EXPECT_TRUE(bytes_of((folder / "real") + "/weights.npy") ==
                bytes_of((folder / "replay") + "/weights.npy"))
        << parameters << ": weights differ";
  }
}

// Stages that decide by themselves leave the plan; the file says what it was all the same.
TEST(RealClock, ThePlannedTimelineIsThatOfTheVirtualClockAlsoWhereStagesDecide) {
  Value job = real_job({"pipedream", parameters_from("{stages: 3, microbatches: 400}")});
  set_path(job, "schedule.pipedream.order", "online");
  const TemporaryFolder folder;
  if (!run_on_ranks(job, folder / "real")) return;
  set_path(job, "schedule.pipedream.order", "greedy");
  job.set("clock", "virtual");
  run_here(job, folder / "virtual");
  const std::string planned = bytes_of((folder / "real") + "/planned_timeline.csv");
  EXPECT_FALSE(planned.empty());
  EXPECT_TRUE(planned == bytes_of((folder / "virtual") + "/timeline.csv"));
  EXPECT_FALSE(std::filesystem::exists((folder / "virtual") + "/planned_timeline.csv"));
}

TEST(RealClock, ObservationsAreThoseOfThePlanWithMeasuredTicks) {
  const ScheduleCase one{"pipedream", parameters_from("{stages: 3, microbatches: 12}")};
  const TemporaryFolder folder;
  if (!run_on_ranks(real_job(one), folder / "real")) return;
  Value planned = real_job(one);
  planned.set("clock", "virtual");
  run_here(planned, folder / "planned");
  const auto rows = [](const std::string& path) {
    std::vector<std::pair<std::int64_t, std::string>> found;  // tick, and the rest
    std::istringstream in(bytes_of(path + "/objective.csv"));
    std::string line;
    std::getline(in, line);
    while (std::getline(in, line)) {
      const auto comma = line.find(',');
      found.push_back({std::stoll(line.substr(0, comma)), line.substr(comma)});
    }
    return found;
  };
  const auto real = rows(folder / "real"), plan = rows(folder / "planned");
  ASSERT_EQ(real.size(), plan.size());
  for (std::size_t i = 0; i < real.size(); ++i) {
    EXPECT_EQ(real[i].second, plan[i].second) << "row " << i;
    EXPECT_GE(real[i].first, plan[i].first) << "row " << i << " counts what has not ended";
    if (i > 0) {
      EXPECT_GE(real[i].first, real[i - 1].first) << "row " << i;
    }
  }
}

TEST(RealClock, ARunThatDivergesEndsEarlyAndSaysSo) {
  Value job = real_job({"pipedream", parameters_from("{stages: 3, microbatches: 4000}")});
  set_path(job, "optimizer.sgd.learning_rate", 1e6);
  const TemporaryFolder folder;
  const auto result = run_on_ranks(job, folder / "real");
  if (!result) return;
  ASSERT_EQ(result->outcome, RunOutcome::succeeded) << result->message;
  EXPECT_THAT(result->message, testing::HasSubstr("diverged at tick"));
  EXPECT_LT(result->summary.at("microbatches").as_integer(), 4000);
}

}  // namespace
}  // namespace pipewright

int main(int argc, char** argv) {
  return pipewright::mpi_test_main(argc, argv);
}
