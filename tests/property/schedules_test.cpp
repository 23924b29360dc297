// What holds for every schedule in the registry, for every case of
// tests/support/schedule_cases.hpp.
#include <unistd.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "core/schedule/csv.hpp"
#include "core/schedule/validate.hpp"
#include "core/schedule/versions.hpp"
#include "core/sim/metrics.hpp"
#include "tests/support/runs.hpp"
#include "tests/support/schedule_cases.hpp"
#include "tests/support/schedules.hpp"

namespace pipewright {
namespace {

Schedule held(const ScheduleCase& one, const CostModel& cost = {}, const LinkModel& link = {},
              std::int64_t batches = 12) {
  return collect(*make_schedule(one.kind, one.parameters, cost, link, batches));
}

const std::vector<std::pair<CostModel, LinkModel>>& models() {
  static const std::vector<std::pair<CostModel, LinkModel>> all{
      {CostModel(), LinkModel()},
      {CostModel(Tick(2), Tick(3), Tick(1)), LinkModel(Tick(4))},
      {CostModel(Tick(5), Tick(1)), LinkModel(Tick(1))}};
  return all;
}

TEST(EverySchedule, IsValidAndDoesNotDeadlock) {
  for (const ScheduleCase& one : all_schedule_cases()) {
    for (const auto& [cost, link] : models()) {
      const Schedule schedule = held(one, cost, link);
      for (const ScheduleFault& fault : validate(schedule)) {
        ADD_FAILURE() << name_of(one) << ": " << fault.message << "\n" << fault.picture;
      }
      EXPECT_EQ(check_deadlock(schedule), "") << name_of(one);
    }
  }
}

TEST(EverySchedule, HasTheActionsThatItsHeaderSays) {
  for (const ScheduleCase& one : all_schedule_cases()) {
    const Schedule schedule = held(one);
    std::map<ActionKind, std::int64_t> count;
    for (const auto& row : schedule.rows) {
      for (const Action& action : row) ++count[action.kind];
    }
    const ScheduleHeader& header = schedule.header;
    EXPECT_EQ(count[ActionKind::update], header.updates) << name_of(one);
    EXPECT_EQ(count[ActionKind::forward], header.microbatches * header.stages) << name_of(one);
    if (!header.one_block) {
      EXPECT_EQ(count[ActionKind::backward], header.microbatches * header.stages) << name_of(one);
    }
    const std::int64_t round = header.local_steps * header.replicas;
    EXPECT_EQ(count[ActionKind::sync], round == 0 ? 0 : header.microbatches / round * header.rows())
        << name_of(one);
  }
}

TEST(EverySchedule, IsTheSameEveryTimeAndThroughItsCsvForm) {
  for (const ScheduleCase& one : all_schedule_cases()) {
    const Schedule schedule = held(one);
    EXPECT_EQ(held(one), schedule) << name_of(one);
    std::stringstream text;
    write_csv(text, schedule);
    EXPECT_EQ(read_csv(text, "test"), schedule) << name_of(one);
  }
}

TEST(EverySchedule, OneActionAtATimePerRowAndNoneBeforeItsInput) {
  for (const ScheduleCase& one : all_schedule_cases()) {
    for (const auto& [cost, link] : models()) {
      const Timeline timeline =
          simulate(make_schedule(one.kind, one.parameters, cost, link), cost, link);
      std::map<std::int32_t, Tick> free_at;
      std::map<std::tuple<ActionKind, std::int32_t, std::int64_t>, Tick> end_of;
      for (const TimelineEntry& entry : timeline.entries) {
        const std::int32_t row = entry.row.value;
        const std::int64_t m = entry.action.microbatch.value;
        const int stage = entry.action.stage.value;
        EXPECT_GE(entry.start, free_at[row]) << name_of(one);
        free_at[row] = entry.end;
        end_of[{entry.action.kind, row, m}] = entry.end;
        if (entry.action.kind == ActionKind::forward && stage > 0) {
          const auto input = end_of.find({ActionKind::forward, row - 1, m});
          ASSERT_NE(input, end_of.end()) << name_of(one);
          EXPECT_GE(entry.start, input->second + link.latency()) << name_of(one);
        }
        if (entry.action.kind == ActionKind::backward && stage + 1 < timeline.header.stages) {
          const auto input = end_of.find({ActionKind::backward, row + 1, m});
          ASSERT_NE(input, end_of.end()) << name_of(one);
          EXPECT_GE(entry.start, input->second + link.latency()) << name_of(one);
        }
      }
    }
  }
}

TEST(EverySchedule, RandomizedPipeDreamHasNoMoreUnderWayThanAskedFor) {
  for (const ScheduleCase& one : cases_of("rpd")) {
    const Value* asked = one.parameters.find("in_flight_max");
    const std::int64_t cap =
        asked != nullptr ? asked->as_integer() : one.parameters.at("stages").as_integer();
    for (const auto& [cost, link] : models()) {
      // Made and simulated, and the same from its CSV form.
      std::stringstream text;
      write_csv(text, collect(*make_schedule(one.kind, one.parameters, cost, link)));
      const Timeline timeline = simulate(read_csv(text, "test"), cost, link);
      std::map<std::int64_t, Tick> begin, end;
      for (const TimelineEntry& entry : timeline.entries) {
        const std::int64_t k = entry.action.microbatch.value;
        if (entry.action.kind == ActionKind::forward && entry.row == Row(0)) begin[k] = entry.start;
        if (entry.action.kind == ActionKind::update) end[k] = entry.end;
      }
      for (const auto& [k, at] : begin) {
        std::int64_t under_way = 0;
        for (const auto& [other, other_begin] : begin) {
          under_way += other_begin <= at && end.at(other) > at;
        }
        EXPECT_LE(under_way, cap) << name_of(one) << " at F" << k;
      }
    }
  }
}

TEST(EverySchedule, DelaysOfRandomizedPipeDreamAreBoundedByDelta) {
  for (const ScheduleCase& one : cases_of("rpd")) {
    Simulator simulator(make_schedule(one.kind, one.parameters), {}, {});
    VersionTracker tracker(simulator.header());
    std::set<std::int64_t> seen;
    tracker.on_update([&](const UpdateFacts& facts) {
      EXPECT_TRUE(seen.insert(facts.k.value).second);
      for (const std::int64_t delay : *facts.delays) {
        EXPECT_LE(delay, std::min(simulator.header().delay_max, facts.k.value));
      }
    });
    while (const auto entry = simulator.next()) tracker.add(entry->row, entry->action);
    EXPECT_EQ(static_cast<std::int64_t>(seen.size()), simulator.header().updates);
  }
}

std::vector<double> numbers_of(const Tensor& weights) {
  return {weights.data<double>(), weights.data<double>() + weights.elements()};
}

TEST(EverySchedule, ARunFromItsStoredScheduleGivesTheSameWeightsAndCurve) {
  const std::string path =
      (std::filesystem::temp_directory_path() /
       ("pipewright-schedule-" + std::to_string(testing::UnitTest::GetInstance()->random_seed()) +
        "-" + std::to_string(getpid()) + ".csv"))
          .string();
  for (const ScheduleCase& one : all_schedule_cases()) {
    // `file` knows actions, not what a sync does beside them.
    if (one.parameters.has("outer")) continue;
    Recorder made, read;
    const RunResult first = run_job(job_with(one), made);
    {
      std::ofstream out(path);
      write_csv(out, held(one, {}, {}, 12));
    }
    const RunResult second =
        run_job(job_with({"file", parameters_from("{path: \"" + path + "\"}")}), read);
    EXPECT_EQ(made.curve, read.curve) << name_of(one);
    EXPECT_EQ(made.timeline, read.timeline) << name_of(one);
    EXPECT_EQ(numbers_of(first.weights), numbers_of(second.weights)) << name_of(one);
  }
  std::filesystem::remove(path);
}

TEST(LocalSgd, SpreadHasTheWeightsOfColocated) {
  for (const char* text : {"{stages: 3, replicas: 4, local_steps: 2, microbatches: 30}",
                           "{stages: 1, replicas: 3, local_steps: 1, microbatches: 13}",
                           "{stages: 4, replicas: 2, local_steps: 5, microbatches: 43,"
                           " outer: {nesterov: {learning_rate: 0.7}}}"}) {
    Value spread = parameters_from(text);
    spread.set("placement", "spread");
    Recorder a, b;
    const RunResult colocated = run_job(job_with({"local_sgd", parameters_from(text)}), a);
    const RunResult apart = run_job(job_with({"local_sgd", spread}), b);
    EXPECT_EQ(numbers_of(colocated.weights), numbers_of(apart.weights)) << text;
    EXPECT_EQ(a.curve.back().value, b.curve.back().value) << text;
  }
}

// The mean of one replica is that replica, so rounds change nothing.
TEST(LocalSgd, OfOneReplicaIsPlainSgd) {
  Recorder a, b;
  const RunResult local = run_job(
      job_with({"local_sgd",
                parameters_from("{stages: 3, replicas: 1, local_steps: 2, microbatches: 21}")}),
      a);
  const RunResult plain =
      run_job(job_with({"sequential", parameters_from("{stages: 3, microbatches: 21}")}), b);
  EXPECT_EQ(numbers_of(local.weights), numbers_of(plain.weights));
}

// A flush takes the mean gradient of its microbatches at the same weights, in whatever order they
// ran.
TEST(Flush, FillDrainAndOneForwardOneBackwardGiveTheSameWeights) {
  for (const int accumulate : {1, 3, 7, 20}) {
    Value parameters = parameters_from("{stages: 4, microbatches: 20}");
    parameters.set("accumulate", accumulate);
    Recorder a, b;
    const RunResult fill_drain = run_job(job_with({"fill_drain", parameters}), a);
    const RunResult one_f_one_b = run_job(job_with({"one_f_one_b", parameters}), b);
    EXPECT_EQ(numbers_of(fill_drain.weights), numbers_of(one_f_one_b.weights)) << accumulate;
  }
}

}  // namespace
}  // namespace pipewright
