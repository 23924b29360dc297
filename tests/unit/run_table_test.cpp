#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "core/train/confidence.hpp"
#include "core/train/job.hpp"
#include "core/train/run_table.hpp"
#include "core/train/stability.hpp"
#include "proto/codec/job_file.hpp"
#include "tests/support/runs.hpp"

namespace pipewright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// What Stability says of these values, taken at ticks 0, 10, 20, ...
Value described(const std::vector<double>& values, const std::string& fault = "") {
  Stability stability(static_cast<std::int64_t>(values.size()));
  std::int64_t tick = 0;
  for (const double value : values) {
    stability.add(Tick(tick), value);
    tick += 10;
  }
  Value summary = Value::map();
  stability.describe(summary, fault);
  return summary;
}

TEST(Stability, TheTailIsTheLastQuarterOfTheObservations) {
  const Value summary = described({9, 8, 7, 6, 6, 6, 5, 5, 5, 4, 3, 1});
  EXPECT_EQ(summary.at("stable"), Value(true));
  EXPECT_FALSE(summary.has("unstable_because"));
  EXPECT_EQ(to_json(summary.at("tail"), -1),
            R"({"of":"objective","from_tick":90,"observations":3,"mean":2.6666666666666665,)"
            R"("rise":-2})");
}

TEST(Stability, TheTailHasTwoObservationsAtLeast) {
  EXPECT_EQ(find_path(described({3, 2, 1}), "tail.observations")->as_integer(), 2);
  EXPECT_EQ(find_path(described({3, 2}), "tail.from_tick")->as_integer(), 0);
  const Value one = described({3});
  EXPECT_TRUE(one.at("stable").is_null());
  EXPECT_TRUE(one.at("tail").is_null());
}

TEST(Stability, ARiseInTheTailIsUnstable) {
  const auto with_tail = [](double before, double after) {
    return described({1, 1, 1, 1, 1, 1, before, after});
  };
  EXPECT_EQ(with_tail(0.5, 0.5 * (1 + 0.9e-3)).at("stable"), Value(true));
  const Value rises = with_tail(0.5, 0.5 * (1 + 1.1e-3));
  EXPECT_EQ(rises.at("stable"), Value(false));
  EXPECT_THAT(rises.at("unstable_because").as_text(), HasSubstr("rises in its tail: from tick 60"));
  EXPECT_GT(find_path(rises, "tail.rise")->as_real(), 0);
  // Far below the first value, rounding is no rise.
  EXPECT_EQ(with_tail(1e-12, 9e-10).at("stable"), Value(true));
  EXPECT_EQ(with_tail(1e-12, 2e-9).at("stable"), Value(false));
}

TEST(Stability, MoreThanTenTimesTheFirstValueIsABlowUpEvenIfItComesBack) {
  EXPECT_EQ(described({1, 10, 1, 1, 1, 1, 1, 1}).at("stable"), Value(true));
  const Value blown = described({1, 11, 12, 1, 1, 1, 1, 1});
  EXPECT_EQ(blown.at("stable"), Value(false));
  EXPECT_EQ(blown.at("unstable_because").as_text(),
            "the objective is 11 at tick 10, more than 10 times its first value 1");
  EXPECT_EQ(find_path(blown, "tail.mean")->as_real(), 1);
}

TEST(Stability, ADivergedRunIsUnstableAndHasNoTail) {
  Stability stability(100);
  stability.add(Tick(0), 1);
  Value summary = Value::map();
  stability.describe(summary, "the objective is nan at tick 7");
  EXPECT_EQ(summary.at("stable"), Value(false));
  EXPECT_EQ(summary.at("unstable_because").as_text(), "the objective is nan at tick 7");
  EXPECT_TRUE(summary.at("tail").is_null());
}

Value quadratic_job(double learning_rate) {
  Value job = Value::map();
  set_path(job, "objective.quadratic.generate.kind", "random");
  set_path(job, "objective.quadratic.generate.examples", 40);
  set_path(job, "objective.quadratic.generate.parameters", 11);
  set_path(job, "objective.quadratic.batch_size", 4);
  set_path(job, "schedule.pipedream.stages", 3);
  set_path(job, "schedule.pipedream.microbatches", 60);
  set_path(job, "optimizer.sgd.learning_rate", learning_rate);
  return job;
}

TEST(Stability, OfARunIsThatOfItsCurve) {
  Recorder recorder;
  const Value summary = run_job(quadratic_job(0.02), recorder).summary;
  EXPECT_EQ(summary.at("stable"), Value(true));
  const Value& tail = summary.at("tail");
  const auto count = static_cast<std::size_t>(tail.at("observations").as_integer());
  EXPECT_EQ(count, recorder.curve.size() / 4);
  double sum = 0;
  for (std::size_t i = recorder.curve.size() - count; i < recorder.curve.size(); ++i) {
    sum += recorder.curve[i].value;
  }
  EXPECT_EQ(tail.at("from_tick").as_integer(), recorder.curve[recorder.curve.size() - count].tick);
  EXPECT_NEAR(tail.at("mean").as_real(), sum / static_cast<double>(count), 1e-15);
}

TEST(Stability, OfARunIsFalseWhenItGrows) {
  Recorder recorder;
  const Value grown = run_job(quadratic_job(1e3), recorder).summary;
  EXPECT_TRUE(grown.at("diverged").is_map());
  EXPECT_EQ(grown.at("stable"), Value(false));
  EXPECT_THAT(grown.at("unstable_because").as_text(), HasSubstr("at tick"));
}

TEST(Stability, OfARunWithoutAnObjectiveIsThatOfItsLosses) {
  Recorder recorder;
  Value job = quadratic_job(0.02);
  set_path(job, "observe.objective", "never");
  const Value summary = run_job(job, recorder).summary;
  EXPECT_EQ(summary.at("stable"), Value(true));
  EXPECT_EQ(summary.at("tail").at("of"), Value("last_stage_loss"));
  ASSERT_EQ(recorder.losses.size(), 60U);
  double sum = 0;
  for (std::size_t i = 45; i < 60; ++i) sum += recorder.losses[i].value;
  EXPECT_EQ(summary.at("tail").at("from_tick").as_integer(), recorder.losses[45].tick);
  EXPECT_NEAR(summary.at("tail").at("mean").as_real(), sum / 15, 1e-15);
}

TEST(Stability, LossesOfBatchesGoUpAndDown) {
  Stability stability(8, Stability::Of::losses);
  for (const double value : {8., 7., 6., 5., 4., 3., 2., 2.5}) stability.add(Tick(0), value);
  Value summary = Value::map();
  stability.describe(summary, "");
  EXPECT_EQ(summary.at("stable"), Value(true));
  EXPECT_DOUBLE_EQ(summary.at("tail").at("rise").as_real(), 0.5);
}

// t(0.975) of 1, 2 and 9 degrees of freedom from any table: 12.706, 4.303, 2.262.
TEST(Confidence, IntervalsAreStudentsT) {
  const MeanOfRepeats one = mean_with_confidence(std::vector<double>{3});
  EXPECT_EQ(one.mean, 3);
  EXPECT_FALSE(one.interval.has_value());
  const MeanOfRepeats two = mean_with_confidence(std::vector<double>{1, 3});
  EXPECT_EQ(two.mean, 2);  // s = sqrt(2), s / sqrt(2) = 1
  EXPECT_NEAR(two.interval->high - 2, 12.7062047, 1e-6);
  EXPECT_NEAR(2 - two.interval->low, 12.7062047, 1e-6);
  const MeanOfRepeats three = mean_with_confidence(std::vector<double>{1, 2, 3});
  EXPECT_NEAR(three.interval->high - 2, 4.30265273 / std::sqrt(3), 1e-6);
  std::vector<double> ten;
  for (int i = 0; i < 10; ++i) ten.push_back(i);
  EXPECT_NEAR(mean_with_confidence(ten).interval->high - 4.5, 2.26215716 * std::sqrt(82.5 / 9 / 10),
              1e-6);
  const MeanOfRepeats same = mean_with_confidence(std::vector<double>{2, 2, 2});
  EXPECT_EQ(same.interval->low, 2);
  EXPECT_EQ(same.interval->high, 2);
}

TEST(Confidence, ABandHasTheTicksOfAllCurvesAndCurvesKeepTheirValues) {
  const std::vector<std::vector<CurvePoint>> curves{
      {{Tick(0), 4}, {Tick(2), 2}},
      {{Tick(0), 2}, {Tick(3), 1}, {Tick(4), 0}},
  };
  std::vector<std::pair<std::int64_t, double>> means;
  for (const BandRow& row : confidence_band(curves)) {
    means.emplace_back(row.tick.value, row.value.mean);
    EXPECT_TRUE(row.value.interval.has_value());
  }
  EXPECT_THAT(means, ElementsAre(std::pair(0, 3.0), std::pair(2, 2.0), std::pair(3, 1.5),
                                 std::pair(4, 1.0)));
  EXPECT_THAT(confidence_band({}), IsEmpty());
}

TEST(Confidence, ABandEndsWhereARepeatDiverges) {
  const std::vector<std::vector<CurvePoint>> curves{
      {{Tick(0), 4}, {Tick(2), 2}, {Tick(5), 1}},
      {{Tick(0), 2}, {Tick(3), std::numeric_limits<double>::infinity()}},
  };
  EXPECT_EQ(confidence_band(curves).size(), 2U);
}

constexpr std::string_view a_job = R"(objective:
  quadratic: {generate: {kind: random, examples: 60, parameters: 20}, batch_size: 5}
schedule:
  pipedream: {stages: 4, microbatches: 20}
optimizer:
  sgd: {learning_rate: 0.1}
)";

JobRuns runs_of(const std::string& more) {
  return JobRuns(check_job(JobFile::parse(std::string(a_job) + more, "job.yaml").tree()));
}

/// The summary of a run that ended at `last`; its tail mean is `tail`.
Value summary_of(double last, double tail, bool stable = true) {
  Value summary = Value::map();
  summary.set("objective_last", last);
  summary.set("diverged", false);
  summary.set("stable", stable);
  set_path(summary, "tail.mean", tail);
  summary.set("makespan_ticks", 100);
  summary.set("updates", 80);
  return summary;
}

Value diverged() {
  Value summary = Value::map();
  summary.set("objective_last", std::numeric_limits<double>::quiet_NaN());
  set_path(summary, "diverged.tick", 7);
  summary.set("stable", false);
  summary.set("tail", Value());
  return summary;
}

Value table_of(const std::string& more, const std::vector<Value>& summaries) {
  return run_table(runs_of(more), summaries);
}

std::vector<std::string> warnings_of(const Value& table) {
  std::vector<std::string> texts;
  for (const Value& warning : table.at("warnings").as_list()) texts.push_back(warning.as_text());
  return texts;
}

constexpr const char* three_rates = "sweep: {optimizer.sgd.learning_rate: [0.1, 0.3, 0.2]}\n";

TEST(RunTable, HasARowForEveryRun) {
  const Value table = table_of(three_rates, {summary_of(3, 4), Value(), diverged()});
  std::vector<std::string> outcomes;
  for (const Value& row : table.at("runs").as_list()) {
    outcomes.push_back(row.at("outcome").as_text());
  }
  EXPECT_THAT(outcomes, ElementsAre("succeeded", "failed", "diverged"));
  EXPECT_EQ(to_json(table.at("runs").as_list()[0], -1),
            R"({"run":0,"swept":{"optimizer.sgd.learning_rate":0.1},"seed":0,)"
            R"("outcome":"succeeded","objective_last":3,"tail_mean":4,"stable":true,)"
            R"("makespan_ticks":100,"updates":80})");
  EXPECT_THAT(warnings_of(table),
              testing::IsSupersetOf({"1 of 3 runs failed", "1 of 3 runs diverged"}));
}

TEST(RunTable, TheBestByTailMeanIsAmongTheStableOnes) {
  const Value table =
      table_of(three_rates, {summary_of(3, 3), summary_of(1, 1, false), summary_of(2, 2)});
  EXPECT_EQ(find_path(table, "best.by_final.point")->as_integer(), 1);
  EXPECT_EQ(find_path(table, "best.by_final.value")->as_real(), 1);
  EXPECT_EQ(find_path(table, "best.by_tail_mean_of_stable.point")->as_integer(), 2);
  EXPECT_THAT(warnings_of(table),
              ElementsAre("the best value stands on the edge of the grid: "
                          "optimizer.sgd.learning_rate = 0.3 is the largest of 3 values; widen the "
                          "grid"));
}

TEST(RunTable, TheFirstOfEqualPointsIsBest) {
  const Value table = table_of(three_rates, {summary_of(2, 2), summary_of(2, 2), summary_of(2, 2)});
  EXPECT_EQ(find_path(table, "best.by_final.point")->as_integer(), 0);
  const Value& edge = find_path(table, "best.by_final.edges")->as_list().at(0);
  EXPECT_EQ(edge.at("side").as_text(), "low");
  EXPECT_THAT(warnings_of(table), ElementsAre(HasSubstr("0.1 is the smallest of 3 values")));
}

TEST(RunTable, InsideTheGridThereIsNoWarning) {
  const Value table = table_of(three_rates, {summary_of(2, 2), summary_of(3, 3), summary_of(1, 1)});
  EXPECT_TRUE(find_path(table, "best.by_final.edges")->as_list().empty());
  EXPECT_THAT(warnings_of(table), IsEmpty());
}

TEST(RunTable, NothingIsBestWhenAllHaveDiverged) {
  const Value table = table_of(three_rates, {diverged(), diverged(), diverged()});
  EXPECT_TRUE(find_path(table, "best.by_final")->is_null());
  EXPECT_TRUE(find_path(table, "best.by_tail_mean_of_stable")->is_null());
  EXPECT_TRUE(table.at("groups").as_list()[0].at("objective_last").is_null());
  EXPECT_THAT(warnings_of(table), ElementsAre("3 of 3 runs diverged"));
}

TEST(RunTable, OnePointHasNoEdge) {
  const Value table = table_of("sweep: {optimizer.sgd.learning_rate: [0.1]}\n", {summary_of(2, 2)});
  EXPECT_EQ(find_path(table, "best.by_final.point")->as_integer(), 0);
  EXPECT_THAT(warnings_of(table), IsEmpty());
}

TEST(RunTable, RepeatsAreTakenTogether) {
  const Value table = table_of(std::string("repeats: 2\n") + three_rates,
                               {summary_of(1, 1), summary_of(5, 5), summary_of(2, 2),
                                summary_of(3, 3, false), summary_of(0, 0), diverged()});
  const Value::List& groups = table.at("groups").as_list();
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].at("runs").as_integer(), 2);
  EXPECT_EQ(find_path(groups[0], "objective_last.mean")->as_real(), 3);
  EXPECT_LT(find_path(groups[0], "objective_last.low")->as_real(), 1);
  EXPECT_GT(find_path(groups[0], "objective_last.high")->as_real(), 5);
  // One repeat of the last point has diverged: its other value says nothing about the point.
  EXPECT_TRUE(groups[2].at("objective_last").is_null());
  EXPECT_EQ(find_path(table, "best.by_final.point")->as_integer(), 1);
  EXPECT_EQ(find_path(table, "best.by_tail_mean_of_stable.point")->as_integer(), 0);
  EXPECT_EQ(table.at("runs").as_list()[3].at("seed").as_integer(), 1);
}

TEST(RunTable, RepeatsAloneAreOnePoint) {
  const Value table =
      table_of("repeats: 3\n", {summary_of(1, 1), summary_of(2, 2), summary_of(3, 3)});
  EXPECT_EQ(table.at("groups").as_list().size(), 1U);
  EXPECT_EQ(find_path(table, "best.by_final.value")->as_real(), 2);
  EXPECT_THAT(warnings_of(table), IsEmpty());
}

TEST(RunTable, IntegersHaveEdgesAndTextsAndSeedsHaveNone) {
  const Value table = table_of(
      "sweep: {schedule.pipedream.stages: {log2: [1, 2]}, init: [zeros, random], "
      "seed: [1, 2]}\n",
      {summary_of(9, 9), summary_of(9, 9), summary_of(9, 9), summary_of(9, 9), summary_of(9, 9),
       summary_of(9, 9), summary_of(9, 9), summary_of(1, 1)});
  EXPECT_THAT(warnings_of(table),
              ElementsAre(HasSubstr("schedule.pipedream.stages = 4 is the largest of 2 values")));
}

TEST(RunTable, AValueAtTheLimitOfItsKeyIsNoEdge) {
  const std::vector<Value> summaries{summary_of(1, 1), summary_of(2, 2)};
  EXPECT_THAT(warnings_of(table_of("sweep: {schedule.pipedream.stages: [1, 2]}\n", summaries)),
              IsEmpty());
  EXPECT_THAT(warnings_of(table_of("sweep: {optimizer.sgd.momentum: [0, 0.5]}\n", summaries)),
              IsEmpty());
}

TEST(RunTable, PointsOfAListHaveEdgesInTheKeysThatTheyName) {
  const Value table = table_of(
      "sweep: [{optimizer.sgd.learning_rate: 0.1}, {optimizer.sgd.learning_rate: 0.2, seed: 4}, "
      "{seed: 5}]\n",
      {summary_of(3, 3), summary_of(1, 1), summary_of(2, 2)});
  EXPECT_THAT(warnings_of(table), ElementsAre(HasSubstr("0.2 is the largest of 2 values")));
}

TEST(RunTable, WithoutAnObjectiveNothingIsBest) {
  Value summary = summary_of(0, 0);
  summary.set("objective_last", Value());
  summary.set("tail", Value());
  const Value table = table_of(three_rates, {summary, summary, summary});
  EXPECT_TRUE(find_path(table, "best.by_final")->is_null());
  EXPECT_THAT(warnings_of(table), IsEmpty());
}

TEST(RunTable, RepeatsThatAreTheSameAreSaidToBe) {
  const std::vector<Value> same{summary_of(0.1, 0.3), summary_of(0.1, 0.3), summary_of(0.1, 0.3)};
  const Value table = table_of("repeats: 3\n", same);
  EXPECT_THAT(warnings_of(table),
              ElementsAre(HasSubstr("nothing in this job draws from its seed")));
  EXPECT_EQ(find_path(table.at("groups").as_list()[0], "tail_mean.low")->as_real(), 0.3);
}

TEST(RunTable, IsACsvFileToo) {
  const JobRuns runs = runs_of("sweep: {name: [\"a, \\\"b\\\"\", c], seed: [3, 4]}\n");
  const Value table = run_table(
      runs, std::vector<Value>{summary_of(0.5, 2), summary_of(3, 4, false), Value(), diverged()});
  EXPECT_EQ(runs_csv(runs, table),
            "run,name,seed,outcome,objective_last,tail_mean,stable\n"
            "0,\"a, \"\"b\"\"\",3,succeeded,0.5,2,true\n"
            "1,\"a, \"\"b\"\"\",4,succeeded,3,4,false\n"
            "2,c,3,failed,,,\n"
            "3,c,4,diverged,nan,,false\n");
  std::string band = band_csv_header;
  append_band_csv(band, 4,
                  std::vector<BandRow>{{Tick(0), {1, Interval{0.5, 1.5}}}, {Tick(9), {2, {}}}});
  EXPECT_EQ(band, "point,tick,mean,low,high\n4,0,1,0.5,1.5\n4,9,2,,\n");
}

}  // namespace
}  // namespace pipewright
