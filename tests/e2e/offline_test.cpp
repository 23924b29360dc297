// The commands that need no daemon, as real processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "core/base/text.hpp"
#include "core/train/job.hpp"
#include "proto/codec/job_file.hpp"
#include "proto/codec/provenance.hpp"
#include "tests/e2e/processes.hpp"
#include "tests/support/shared.hpp"

namespace pipewright::e2e {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string program = std::string(PIPEWRIGHT_BINARY_DIR) + "/bin/pipewright";

Outcome pipewright(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), program);
  return run(arguments);
}

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

Value json(const std::string& text) {
  return JobFile::parse(text, "output").tree();
}

constexpr const char* small_job = R"(name: small
objective:
  quadratic: {generate: {kind: tridiagonal, examples: 60, parameters: 24, seed: 0}, batch_size: 5}
schedule:
  pipedream: {stages: 4, microbatches: 30}
optimizer: {sgd: {learning_rate: 0.01}}
)";

class Offline : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "pipewright-offline-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    job_ = write("job.yaml", small_job);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  fs::path folder_;
  std::string job_;
};

std::vector<std::string> plan_command(const Value& golden) {
  const auto number = [&](const char* key) { return std::to_string(golden.at(key).as_integer()); };
  return {"plan",
          "--schedule",
          "pipedream",
          "--stages",
          number("stages"),
          "--microbatches",
          number("microbatches"),
          "--in-flight-max",
          number("max_in_flight"),
          "--format",
          "rows"};
}

TEST(Plan, RowsAreTheGoldenTimelinesAndNothingElse) {
  PIPEWRIGHT_NEEDS_SHARED("golden/timelines.json");
  const Value golden = JobFile::read(shared_path("golden/timelines.json")).tree();
  int cases = 0;
  for (const Value& one : golden.at("cases").as_list()) {
    if (one.at("schedule").as_text() != "pipedream") continue;
    std::string rows;
    for (const Value& row : one.at("rows").as_list()) rows += row.as_text() + "\n";
    const Outcome outcome = pipewright(plan_command(one));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, rows);
    EXPECT_EQ(outcome.err, "");
    ++cases;
  }
  EXPECT_GE(cases, 10);
}

TEST(Plan, SummaryGivesMakespanBubblesStashStalenessAndDelay) {
  const Outcome outcome =
      pipewright({"plan", "--schedule", "pipedream", "--stages", "4", "--microbatches", "40"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("schedule   pipedream, 4 stages"));
  EXPECT_THAT(outcome.out, HasSubstr("makespan   86 ticks"));  // 2(N+S-1)
  EXPECT_THAT(outcome.out, HasSubstr("idle/ideal 0.075"));     // (S-1)/N
  EXPECT_THAT(outcome.out, HasSubstr("; steady max 14,"));     // floor(S^2 - S/2)
  EXPECT_THAT(outcome.out, HasSubstr("PEAK STASH"));
  EXPECT_THAT(outcome.out, HasSubstr("STALENESS"));
}

TEST(Plan, JsonHoldsTheTimelineAndTheMetrics) {
  const Outcome outcome = pipewright({"plan", "--schedule", "pipedream", "--stages", "2",
                                      "--microbatches", "3", "--format", "json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Value plan = json(outcome.out);
  EXPECT_EQ(plan.at("schedule").at("stages").as_integer(), 2);
  EXPECT_EQ(plan.at("timeline").as_list().size(), 18u);  // F, B and U of 3 on 2 stages
  EXPECT_EQ(plan.at("timeline").as_list().front().at("kind").as_text(), "F");
  EXPECT_EQ(plan.at("metrics").at("makespan_ticks").as_integer(), 8);
}

TEST(Plan, LatencyAndCostsChangeThePlan) {
  // One microbatch through two stages: F 2, hop 3, F 2, B 4, hop 3, B 4.
  const Outcome outcome =
      pipewright({"plan", "--schedule", "pipedream", "--stages", "2", "--microbatches", "1",
                  "--forward", "2", "--backward", "4", "--latency", "3", "--format", "rows"});
  EXPECT_EQ(outcome.out,
            "F0 F0 . . . . . . . . . . . . B0 B0 B0 B0\n"
            ". . . . . F0 F0 B0 B0 B0 B0 . . . . . . .\n");
}

TEST_F(Offline, PlanTakesAJobFileAndWhatIsSet) {
  const Outcome outcome = pipewright({"plan", job_, "--set", "schedule.pipedream.microbatches=2",
                                      "--stages", "1", "--format", "rows"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "F0 B0 F1 B1\n");
}

TEST_F(Offline, APlannedScheduleRunsFromItsCsv) {
  const Outcome plan = pipewright({"plan", job_, "--format", "csv"});
  ASSERT_EQ(plan.status, 0) << plan.err;
  write("plan.csv", plan.out);
  ASSERT_EQ(pipewright({"run", job_, "--out", path("a")}).status, 0);
  const Outcome from_file =
      pipewright({"run", job_, "--out", path("b"), "--set", "schedule={file: {path: plan.csv}}"});
  ASSERT_EQ(from_file.status, 0) << from_file.err;
  EXPECT_EQ(content(path("a/weights.npy")), content(path("b/weights.npy")));
}

TEST(Plan, MistakesEndWithStatus2AndSayWhatIsRight) {
  const auto fault = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "plan");
    const Outcome outcome = pipewright(arguments);
    EXPECT_EQ(outcome.status, 2) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  EXPECT_THAT(fault({"--schedule", "pipedrem"}), HasSubstr("did you mean 'pipedream'?"));
  EXPECT_THAT(fault({"--schedule", "pipedream", "--stages", "4"}), HasSubstr("microbatches"));
  EXPECT_THAT(fault({"--schedule", "pipedream", "--stages", "0", "--microbatches", "3"}),
              HasSubstr("must be at least 1"));
  EXPECT_THAT(
      fault({"--schedule", "pipedream", "--stages", "2", "--microbatches", "3", "--path", "x"}),
      HasSubstr("--in-flight-max"));
  EXPECT_THAT(fault({"--schedule", "pipedream", "--stages", "2", "--microbatches", "9", "--forward",
                     "5ms", "--latency", "3"}),
              HasSubstr("times are mixed"));
  EXPECT_THAT(fault({"--schedule", "pipedream", "--stages", "2", "--microbatches", "100000000000",
                     "--format", "rows"}),
              HasSubstr("10000 columns"));
  EXPECT_THAT(fault({}), HasSubstr("--schedule"));
}

TEST_F(Offline, RunWritesItsFilesAndARecordOfWhereTheyCameFrom) {
  const Outcome outcome = pipewright({"run", job_, "--out", path("out"), "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const char* file : {"objective.csv", "last_stage_loss.csv", "weights.npy", "schedule.csv",
                           "timeline.csv", "summary.json"}) {
    EXPECT_TRUE(fs::exists(folder_ / "out" / file)) << file;
  }
  EXPECT_EQ(outcome.out, content(path("out/summary.json")));
  const Value summary = json(outcome.out);
  EXPECT_EQ(summary.at("program").at("version").as_text(), program_version());
  EXPECT_EQ(summary.at("makespan_ticks").as_integer(), 66);  // 2(N+S-1)
  EXPECT_EQ(summary.at("job").at("name").as_text(), "small");
  EXPECT_EQ(summary.at("job_sha256").as_text().size(), 64u);
  EXPECT_THAT(content(path("out/objective.csv")), StartsWith("tick,updates,value\n0,0,"));
}

TEST_F(Offline, RunReplacesAnEarlierRunButNoOtherFiles) {
  ASSERT_EQ(pipewright({"run", job_, "--out", path("out")}).status, 0);
  const Outcome again = pipewright({"run", job_, "--out", path("out"), "--set", "seed=1"});
  EXPECT_EQ(again.status, 0);
  EXPECT_THAT(again.err, HasSubstr("replacing the earlier run"));

  fs::create_directory(folder_ / "mine");
  write("mine/thesis.tex", "text");
  const Outcome refused = pipewright({"run", job_, "--out", path("mine")});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("--force"));
  EXPECT_FALSE(fs::exists(path("mine/summary.json")));
  EXPECT_EQ(pipewright({"run", job_, "--out", path("mine"), "--force"}).status, 0);
  EXPECT_TRUE(fs::exists(path("mine/thesis.tex")));
}

TEST_F(Offline, AJobThatCannotBeginLeavesTheEarlierRunAlone) {
  ASSERT_EQ(pipewright({"run", job_, "--out", path("out")}).status, 0);
  const std::string before = content(path("out/summary.json"));
  const Outcome outcome =
      pipewright({"run", job_, "--out", path("out"), "--set",
                  "objective={logistic: {data: {libsvm: missing.txt}, batch_size: 5}}"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr(path("missing.txt")));
  EXPECT_EQ(content(path("out/summary.json")), before);
}

TEST_F(Offline, ADivergingRunIsAResult) {
  const Outcome outcome =
      pipewright({"run", job_, "--out", path("out"), "--set", "optimizer.sgd.learning_rate=1e300"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("diverged at tick"));
  EXPECT_TRUE(json(content(path("out/summary.json"))).at("diverged").is_map());
}

TEST_F(Offline, ReplayGivesTheSameFilesByteForByte) {
  ASSERT_EQ(pipewright({"run", job_, "--out", path("out")}).status, 0);
  const Outcome outcome = pipewright({"replay", path("out"), "--out", path("again")});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const char* file :
       {"objective.csv", "last_stage_loss.csv", "weights.npy", "schedule.csv", "timeline.csv"}) {
    EXPECT_EQ(content(folder_ / "out" / file), content(folder_ / "again" / file)) << file;
  }
  EXPECT_EQ(pipewright({"replay", path("out"), "--out", path("out")}).status, 2);
  EXPECT_EQ(pipewright({"replay", path("nowhere"), "--out", path("x")}).status, 2);
}

TEST_F(Offline, InterruptEndsARunAndSaysThatItsFilesAreIncomplete) {
  Running running({program, "run", job_, "--out", path("out"), "--set",
                   "schedule.pipedream.microbatches=400000"});
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(90);
  while (!fs::exists(path("out/schedule.csv"))) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  running.signal(SIGINT);
  const Outcome outcome = running.wait();
  EXPECT_EQ(outcome.status, 130) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("not complete"));
  EXPECT_FALSE(fs::exists(path("out/summary.json")));
}

constexpr const char* rates = "sweep.optimizer.sgd.learning_rate=[0.005, 0.01, 0.02]";

TEST_F(Offline, EveryRunOfASweepHasTheFilesOfItsOwnJob) {
  const Outcome outcome = pipewright({"run", job_, "--out", path("out"), "--set", rates, "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, content(path("out/summary.json")));
  const Value summary = json(outcome.out);
  EXPECT_EQ(summary.at("runs").as_list().size(), 3u);
  EXPECT_EQ(find_path(summary, "best.by_final.point")->as_integer(), 2);
  EXPECT_THAT(outcome.err, HasSubstr("warning: the best value stands on the edge of the grid: "
                                     "optimizer.sgd.learning_rate = 0.02 is the largest of 3"));
  EXPECT_FALSE(fs::exists(path("out/band.csv")));
  const std::string table = content(path("out/runs.csv"));
  EXPECT_THAT(table, StartsWith("run,optimizer.sgd.learning_rate,seed,outcome,objective_last,"
                                "tail_mean,stable\n0,0.005,0,succeeded,"));

  ASSERT_EQ(
      pipewright({"run", job_, "--out", path("one"), "--set", "optimizer.sgd.learning_rate=0.02"})
          .status,
      0);
  for (const char* file :
       {"objective.csv", "last_stage_loss.csv", "weights.npy", "schedule.csv", "timeline.csv"}) {
    EXPECT_EQ(content(folder_ / "out/run-0002" / file), content(folder_ / "one" / file)) << file;
  }
  const Value one = json(content(path("one/summary.json")));
  const Value run = json(content(path("out/run-0002/summary.json")));
  EXPECT_EQ(run.at("job"), one.at("job"));
  EXPECT_EQ(run.at("job_sha256"), one.at("job_sha256"));
  EXPECT_EQ(summary.at("runs").as_list()[2].at("objective_last"), one.at("objective_last"));
}

TEST_F(Offline, ASweepGivesTheSameHoweverManyRunsAreExecutedAtATime) {
  for (const char* jobs : {"1", "5"}) {
    const Outcome outcome = pipewright({"run", job_, "--out", path(jobs), "--jobs", jobs, "--set",
                                        rates, "--set", "init=random", "--set", "repeats=3",
                                        "--set", "sweep.schedule.pipedream.stages={log2: [0, 2]}"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("best at the end"));
    EXPECT_THAT(outcome.out, HasSubstr("± 95 % confidence"));
  }
  for (const char* file : {"runs.csv", "band.csv", "run-0026/objective.csv", "run-0026/weights.npy",
                           "run-0000/timeline.csv"}) {
    EXPECT_EQ(content(folder_ / "1" / file), content(folder_ / "5" / file)) << file;
  }
  EXPECT_FALSE(fs::exists(path("5/run-0027")));
  const auto band = content(path("5/band.csv"));
  EXPECT_THAT(band, StartsWith("point,tick,mean,low,high\n0,0,"));
  EXPECT_THAT(band, HasSubstr("\n8,66,"));
}

TEST_F(Offline, RunsThatDivergeOrCannotBeExecutedDoNotStopTheOthers) {
  const Outcome diverged = pipewright({"run", job_, "--out", path("out"), "--set",
                                       "sweep.optimizer.sgd.learning_rate=[0.01, 1e300]"});
  EXPECT_EQ(diverged.status, 0) << diverged.err;
  EXPECT_THAT(diverged.out, HasSubstr("warning: 1 of 2 runs diverged"));
  write("a.libsvm", "1 1:1 2:1\n0 1:1\n1 2:1\n0 1:2\n1 1:-1\n");
  const Outcome failed =
      pipewright({"run", job_, "--out", path("out"), "--set",
                  "objective={logistic: {data: {libsvm: a.libsvm}, batch_size: 2}}", "--set",
                  "schedule.pipedream.stages=2", "--set",
                  "sweep.objective.logistic.data.libsvm=[a.libsvm, missing.libsvm, a.libsvm]"});
  EXPECT_EQ(failed.status, 1);
  EXPECT_THAT(failed.err, HasSubstr("run 1: "));
  EXPECT_THAT(failed.err, HasSubstr("missing.libsvm"));
  const Value summary = json(content(path("out/summary.json")));
  EXPECT_EQ(summary.at("runs").as_list()[1].at("outcome").as_text(), "failed");
  EXPECT_EQ(summary.at("runs").as_list()[2].at("outcome").as_text(), "succeeded");
  EXPECT_EQ(summary.at("data").as_list().size(), 1u);
}

TEST_F(Offline, ASweepReplacesAnEarlierOneAndKeepsOtherFiles) {
  ASSERT_EQ(
      pipewright({"run", job_, "--out", path("out"), "--set", rates, "--set", "repeats=2"}).status,
      0);
  write("out/run-0004/notes.txt", "mine");
  const Outcome again = pipewright({"run", job_, "--out", path("out"), "--set", rates});
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("replacing the earlier run"));
  EXPECT_FALSE(fs::exists(path("out/band.csv")));
  EXPECT_FALSE(fs::exists(path("out/run-0005")));
  EXPECT_FALSE(fs::exists(path("out/run-0004/summary.json")));
  EXPECT_TRUE(fs::exists(path("out/run-0004/notes.txt")));
  ASSERT_EQ(pipewright({"run", job_, "--out", path("out")}).status, 0);
  EXPECT_FALSE(fs::exists(path("out/runs.csv")));
  EXPECT_FALSE(fs::exists(path("out/run-0000")));
}

TEST_F(Offline, ARunOfASweepIsReplayed) {
  ASSERT_EQ(pipewright({"run", job_, "--out", path("out"), "--set", rates}).status, 0);
  const Outcome outcome = pipewright({"replay", path("out/run-0001"), "--out", path("again")});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(content(path("out/run-0001/objective.csv")), content(path("again/objective.csv")));
  const Outcome all = pipewright({"replay", path("out"), "--out", path("again")});
  EXPECT_EQ(all.status, 2);
  EXPECT_THAT(all.err, HasSubstr(path("out/run-0000")));
}

TEST_F(Offline, PlanAndValidateSayHowManyRunsThereAre) {
  const Outcome plan = pipewright({"plan", job_, "--set", rates});
  EXPECT_EQ(plan.status, 0) << plan.err;
  EXPECT_THAT(plan.err, HasSubstr("3 runs; the plan is of the first, learning_rate = 0.005"));
  const Outcome valid = pipewright({"validate", job_, "--set", rates, "--set", "repeats=4"});
  EXPECT_EQ(valid.status, 0) << valid.err;
  EXPECT_THAT(valid.out, HasSubstr("12: 3 points, each under 4 seeds"));
  const Outcome wrong = pipewright({"validate", job_, "--set", "sweep.seed=[1, x]"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--set sweep.seed: sweep.seed[1]: expected a whole number"));
}

TEST_F(Offline, InterruptEndsASweepAndSaysHowManyRunsAreComplete) {
  Running running({program, "run", job_, "--out", path("out"), "--jobs", "2", "--set", rates,
                   "--set", "schedule.pipedream.microbatches=400000"});
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(90);
  while (!fs::exists(path("out/run-0001/schedule.csv"))) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  running.signal(SIGINT);
  const Outcome outcome = running.wait();
  EXPECT_EQ(outcome.status, 130) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("0 of 3 runs are complete"));
  EXPECT_FALSE(fs::exists(path("out/summary.json")));
}

TEST_F(Offline, ValidateForetellsWhatTheRunTakes) {
  const Outcome estimate = pipewright({"validate", job_, "--json"});
  ASSERT_EQ(estimate.status, 0) << estimate.err;
  ASSERT_EQ(pipewright({"run", job_, "--out", path("out")}).status, 0);
  const Value said = json(estimate.out);
  const Value summary = json(content(path("out/summary.json")));
  EXPECT_EQ(said.at("makespan_ticks"), summary.at("makespan_ticks"));
  EXPECT_EQ(said.at("updates"), summary.at("updates"));
  EXPECT_EQ(said.at("messages"), summary.at("messages_sent"));
  EXPECT_EQ(static_cast<std::size_t>(said.at("observations").as_integer()),
            read_numbers(path("out/objective.csv")).size());
  std::int64_t bytes = 0;
  for (const auto& file : fs::directory_iterator(path("out"))) {
    bytes += static_cast<std::int64_t>(file.file_size());
  }
  EXPECT_GT(said.at("disk_bytes").as_integer(), bytes / 2);
  EXPECT_LT(said.at("disk_bytes").as_integer(), bytes * 2);

  const Outcome text = pipewright({"validate", job_});
  EXPECT_THAT(text.out, StartsWith("OK\n"));
  EXPECT_THAT(text.out, HasSubstr("memory"));
}

TEST_F(Offline, MistakesInAJobAreNamedWithFileLineAndNearestKey) {
  std::string text = small_job;
  text.replace(text.find("learning_rate"), 13, "learnig_rate");
  const std::string wrong = write("wrong.yaml", text);
  for (const char* command : {"validate", "plan"}) {
    const Outcome outcome = pipewright({command, wrong});
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(wrong + ":6: "));
    EXPECT_THAT(outcome.err, HasSubstr("did you mean 'learning_rate'?"));
  }
  EXPECT_EQ(pipewright({"validate", path("nowhere.yaml")}).status, 2);
}

TEST(Help, JobNamesEveryKeyOfTheSchema) {
  const Outcome outcome = pipewright({"help", "job"});
  EXPECT_EQ(outcome.status, 0);
  const std::function<void(const ParamSpec&)> look_for = [&](const ParamSpec& spec) {
    if (!spec.name.empty()) {
      EXPECT_THAT(outcome.out, HasSubstr(spec.name + ":"));
    }
    for (const ParamSpec& child : spec.children) look_for(child);
  };
  for (const ParamSpec& key : job_schema().children) look_for(key);
}

TEST(Help, DescribesCommandsAndRefusesOtherTopics) {
  EXPECT_THAT(pipewright({"help", "plan"}).out, HasSubstr("--in-flight-max"));
  EXPECT_THAT(pipewright({"help"}).out, HasSubstr("help job"));
  const Outcome wrong = pipewright({"help", "jobb"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("did you mean 'job'?"));
}

}  // namespace
}  // namespace pipewright::e2e
