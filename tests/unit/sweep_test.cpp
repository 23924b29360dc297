#include <gmock/gmock.h>

#include "core/base/error.hpp"
#include "core/train/job.hpp"
#include "core/train/sweep.hpp"
#include "proto/codec/api.hpp"
#include "proto/codec/job_file.hpp"

namespace pipewright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view a_job = R"(objective:
  quadratic: {generate: {kind: random, examples: 60, parameters: 20}, batch_size: 5}
schedule:
  pipedream: {stages: 4, microbatches: 20}
optimizer:
  sgd: {learning_rate: 0.1}
seed: 7
)";

JobFile file_of(const std::string& more) {
  return JobFile::parse(std::string(a_job) + more, "job.yaml");
}

Value checked(const std::string& more) {
  return check_job(file_of(more).tree());
}

/// The fault of a job that `more` completes.
ParamError fault_of(const std::string& more) {
  try {
    checked(more);
  } catch (const ParamError& error) {
    return error;
  }
  return {"", "nothing is wrong"};
}

std::string seen(const JobRun& run) {
  std::string text;
  for (const auto& [path, value] : run.swept) {
    text += to_json(value, -1) + " ";
    const Value* in_job = find_path(run.job, path);
    EXPECT_NE(in_job, nullptr) << path;
    if (in_job == nullptr || in_job->is_map()) continue;
    if (path != "seed") {
      EXPECT_EQ(*in_job, value) << path;
    }
  }
  return text + "seed " + std::to_string(run.seed);
}

std::vector<std::string> all(const JobRuns& runs) {
  std::vector<std::string> texts;
  for (std::uint32_t i = 0; i < runs.size(); ++i) {
    const JobRun run = runs.run(i);
    EXPECT_EQ(run.number, i);
    EXPECT_EQ(run.job.at("seed").as_integer(), static_cast<std::int64_t>(run.seed));
    EXPECT_FALSE(run.job.has("sweep"));
    EXPECT_EQ(run.job.at("repeats"), Value(1));
    JobConfig::from(run.job);  // it is a job of one run
    texts.push_back(seen(run));
  }
  return texts;
}

TEST(Sweep, AJobWithoutItHasOneRunWhichIsTheJob) {
  const Value job = checked("");
  const JobRuns runs(job);
  EXPECT_FALSE(runs.many());
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs.run(0).job, job);
  EXPECT_TRUE(runs.run(0).swept.empty());
}

TEST(Sweep, AGridHasEveryCombinationAndItsLastKeyChangesFastest) {
  const JobRuns runs(
      checked("sweep: {schedule.pipedream.stages: [2, 3], "
              "optimizer.sgd.learning_rate: [1, 0.5, 0.25]}\n"));
  EXPECT_TRUE(runs.many());
  EXPECT_THAT(all(runs), ElementsAre("2 1 seed 7", "2 0.5 seed 7", "2 0.25 seed 7", "3 1 seed 7",
                                     "3 0.5 seed 7", "3 0.25 seed 7"));
  EXPECT_TRUE(runs.run(0).swept[0].second.is_integer());
  EXPECT_TRUE(runs.run(0).swept[1].second.is_real());  // 1 where a real is meant
}

TEST(Sweep, AListHasItsPointsAndWhatTheyLeaveOutStaysAsInTheJob) {
  const JobRuns runs(
      checked("sweep:\n  - {optimizer.sgd.learning_rate: 0.5, seed: 3}\n"
              "  - {schedule.pipedream.stages: 2}\n"));
  EXPECT_THAT(all(runs), ElementsAre("0.5 3 seed 3", "2 seed 7"));
  EXPECT_EQ(find_path(runs.run(1).job, "optimizer.sgd.learning_rate")->as_real(), 0.1);
}

TEST(Sweep, PowersOfTwoAreIntegersWhereTheKeyTakesThem) {
  const JobRuns rates(checked("sweep: {optimizer.sgd.learning_rate: {log2: [-3, 1]}}\n"));
  EXPECT_THAT(all(rates),
              ElementsAre("0.125 seed 7", "0.25 seed 7", "0.5 seed 7", "1 seed 7", "2 seed 7"));
  const JobRuns stages(checked("sweep: {schedule.pipedream.stages: {log2: [3, 1]}}\n"));
  EXPECT_THAT(all(stages), ElementsAre("8 seed 7", "4 seed 7", "2 seed 7"));
  const JobRuns latency(checked("sweep: {link.latency: {log2: [0, 1]}}\n"));
  EXPECT_THAT(all(latency), ElementsAre("1 seed 7", "2 seed 7"));
}

TEST(Sweep, TextsAndKindsNamedAloneAreValuesToo) {
  const JobRuns runs(checked("init: random\nsweep: {init: [zeros, random], name: [a, b]}\n"));
  EXPECT_EQ(runs.size(), 4U);
  EXPECT_TRUE(runs.run(0).job.at("init").has("zeros"));
  EXPECT_TRUE(runs.run(2).job.at("init").has("random"));
  EXPECT_EQ(runs.run(3).job.at("name").as_text(), "b");
}

TEST(Sweep, KeysMayBeWrittenAsMapsInMaps) {
  const Value nested = checked("sweep: {optimizer: {sgd: {learning_rate: [0.5, 1]}}}\n");
  EXPECT_EQ(nested, checked("sweep: {optimizer.sgd.learning_rate: [0.5, 1]}\n"));
  EXPECT_EQ(fault_of("sweep: {a: {}}\n").path(), "sweep.a");
}

TEST(Sweep, AKeyThatTheJobNeedsMayBeGivenByTheSweepAlone) {
  JobFile file = file_of("sweep: {optimizer.sgd.learning_rate: [0.5, 1]}\n");
  file.set("optimizer={sgd: {}}");
  EXPECT_THAT(all(JobRuns(file.checked())), ElementsAre("0.5 seed 7", "1 seed 7"));
  file.set("sweep=[{optimizer.sgd.learning_rate: 1}, {seed: 2}]");
  EXPECT_THROW(file.checked(), ConfigError);  // the second point has none
}

TEST(Sweep, RepeatsRunEveryPointUnderSeedsThatFollowEachOther) {
  EXPECT_THAT(all(JobRuns(checked("repeats: 3\n"))), ElementsAre("seed 7", "seed 8", "seed 9"));
  const JobRuns runs(checked("repeats: 2\nsweep: {optimizer.sgd.learning_rate: [0.5, 1]}\n"));
  EXPECT_THAT(all(runs), ElementsAre("0.5 seed 7", "0.5 seed 8", "1 seed 7", "1 seed 8"));
}

TEST(Sweep, ASweptSeedIsTheFirstOfItsRepeats) {
  const JobRuns runs(checked("repeats: 2\nsweep: {seed: [10, 20]}\n"));
  EXPECT_THAT(all(runs), ElementsAre("10 seed 10", "10 seed 11", "20 seed 20", "20 seed 21"));
  EXPECT_EQ(fault_of("repeats: 2\nsweep: {seed: [9223372036854775807]}\n").path(), "repeats");
}

TEST(Sweep, AnUnknownKeyNamesTheNearestOne) {
  const ParamError near = fault_of("sweep: {optimizer.sgd.learnig_rate: [1]}\n");
  EXPECT_EQ(near.path(), "sweep.optimizer.sgd.learnig_rate");
  EXPECT_THAT(near.message(), HasSubstr("did you mean 'optimizer.sgd.learning_rate'?"));
  EXPECT_THAT(fault_of("sweep: {learning_rate: [1]}\n").message(),
              HasSubstr("did you mean 'optimizer.sgd.learning_rate'?"));
  EXPECT_THAT(fault_of("sweep: {schedule.local_sgd.replicas: [1]}\n").message(),
              HasSubstr("the job's schedule is 'pipedream', not 'local_sgd'"));
  EXPECT_THAT(fault_of("sweep: {repeats: [1, 2]}\n").message(), HasSubstr("no key 'repeats'"));
}

TEST(Sweep, AValueThatDoesNotFitIsNamedWithItsPlace) {
  const ParamError range = fault_of("sweep: {optimizer.sgd.learning_rate: [0.1, -1]}\n");
  EXPECT_EQ(range.path(), "sweep.optimizer.sgd.learning_rate[1]");
  EXPECT_THAT(range.message(), HasSubstr("found -1"));
  const ParamError type = fault_of("sweep: [{seed: 1}, {schedule.pipedream.stages: two}]\n");
  EXPECT_EQ(type.path(), "sweep[1].schedule.pipedream.stages");
  EXPECT_THAT(type.message(), HasSubstr("\"two\""));
  EXPECT_THAT(fault_of("sweep: {schedule.pipedream.stages: {log2: [-1, 2]}}\n").message(),
              HasSubstr("found 0.5"));
}

TEST(Sweep, APointWhoseKeysDoNotFitEachOtherIsNamed) {
  const ParamError units =
      fault_of("cost: {forward: 1ms, backward: 1ms}\nsweep: {link.latency: [0, 3]}\n");
  EXPECT_EQ(units.path(), "sweep.link.latency");
  EXPECT_THAT(units.message(), HasSubstr("with link.latency = 3: times are mixed"));
  const ParamError files = fault_of(
      "init: {npy: [a.npy, b.npy]}\nsweep: {schedule.pipedream.stages: [2, 3], seed: [1, 2]}\n");
  EXPECT_EQ(files.path(), "sweep");
  EXPECT_THAT(files.message(),
              HasSubstr("with schedule.pipedream.stages = 3, seed = 1: init.npy: names 2 files"));
}

TEST(Sweep, EveryValueIsCheckedHoweverManyPointsThereAre) {
  std::string seeds;
  for (int i = 0; i < 1000; ++i) seeds += (i > 0 ? "," : "") + std::to_string(i);
  const ParamError fault = fault_of(
      "cost: {forward: 1ms, backward: 1ms}\nsweep: {link.latency: "
      "[0, 1us, 2us, 3us, 4], seed: [" +
      seeds + "]}\n");
  EXPECT_EQ(fault.path(), "sweep");
  EXPECT_THAT(fault.message(), HasSubstr("with link.latency = 4, seed = 0: times are mixed"));
}

TEST(Sweep, OnlySingleValuesCanBeSwept) {
  EXPECT_THAT(fault_of("sweep: {optimizer.sgd: [1]}\n").message(),
              HasSubstr("is a map; a sweep sets single values, here: optimizer.sgd.learning_rate"));
  EXPECT_THAT(fault_of("sweep: {seed: [[1, 2]]}\n").message(),
              HasSubstr("expected a single value, found [1,2]"));
  EXPECT_EQ(fault_of("sweep: {cost.stragglers: [1]}\n").message(),
            "is a list; a sweep sets single values");
  for (const char* sweep :
       {"3", "{}", "[]", "[3]", "[{}]", "{seed: 3}", "{seed: []}", "{seed: {log2: 3}}",
        "{seed: {log2: [1, 2.5]}}", "{seed: {log2: [0, 99999]}}", "{seed: [null]}",
        "{seed: [1], grid: [{seed: [1]}]}", "[{seed: [1]}]"}) {
    EXPECT_THAT(fault_of("sweep: " + std::string(sweep) + "\n").path(), StartsWith("sweep"))
        << sweep;
  }
  EXPECT_EQ(fault_of("sweep: {link.latency: [1], link: {latency: [1]}}\n").message(),
            "is given twice");
}

TEST(Sweep, TooManyRunsAreRefused) {
  const std::string five = "{log2: [0, 4]}";
  const std::string sweep =
      "sweep: {schedule.pipedream.stages: " + five +
      ", optimizer.sgd.learning_rate: {log2: [-999, 0]}, link.latency: " + five + "}\n";
  EXPECT_EQ(checked(sweep + "repeats: 4\n").at("repeats"), Value(4));
  EXPECT_EQ(JobRuns(checked(sweep + "repeats: 4\n")).size(), 100'000U);
  EXPECT_EQ(fault_of(sweep + "repeats: 5\n").path(), "repeats");
  EXPECT_THAT(fault_of(sweep + "repeats: 5\n").message(), HasSubstr("makes 125000 runs"));
  EXPECT_EQ(fault_of("sweep: {seed: {log2: [0, 61]}, link.latency: {log2: [0, 61]}, "
                     "optimizer.sgd.learning_rate: {log2: [-999, 0]}}\n")
                .path(),
            "sweep");
  EXPECT_THAT(fault_of("repeats: 0\n").message(), HasSubstr("at least 1"));
}

TEST(Sweep, AJobOfManyRunsIsNotTakenForOneRun) {
  EXPECT_THROW(JobConfig::from(checked("repeats: 2\n")), ParamError);
  EXPECT_THROW(JobConfig::from(checked("sweep: {seed: [1]}\n")), ParamError);
}

// A message holds maps in no order, and tells 1.0 and 1 not apart.
TEST(Sweep, MessagesKeepRunsAndTheirOrder) {
  for (const char* more :
       {"repeats: 2\nsweep: {schedule.pipedream.stages: [2, 3], "
        "optimizer.sgd.learning_rate: [1, 0.5], link.latency: {log2: [0, 2]}}\n",
        "sweep: [{seed: 3, optimizer.sgd.learning_rate: 1}, {link.latency: 1, seed: 3}]\n"}) {
    const Value job = checked(more);
    for (const WireFormat format : {WireFormat::protobuf, WireFormat::json}) {
      const std::string bytes = encode(JobSpecBody{job}, format);
      EXPECT_EQ(check_job(decode<JobSpecBody>(bytes, format).spec).at("sweep"), job.at("sweep"));
      EXPECT_EQ(all(JobRuns(check_job(decode<JobSpecBody>(bytes, format).spec))),
                all(JobRuns(job)));
    }
  }
}

TEST(Sweep, SetAddsAndReplacesAKeyOfTheSweep) {
  JobFile file = file_of("sweep: {optimizer.sgd.learning_rate: [0.5, 1]}\n");
  file.set("sweep.optimizer.sgd.learning_rate=[2]");
  file.set("sweep.seed={log2: [0, 1]}");
  file.set("repeats=2");
  EXPECT_THAT(all(JobRuns(file.checked())),
              ElementsAre("2 1 seed 1", "2 1 seed 2", "2 2 seed 2", "2 2 seed 3"));
  file.set("sweep=[{seed: 1}]");
  EXPECT_THROW(file.set("sweep.seed=[1]"), ConfigError);
}

std::string place_of(const JobFile& file) {
  try {
    file.checked();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Sweep, FaultsNameFileAndLine) {
  EXPECT_THAT(place_of(file_of("sweep:\n  optimizer.sgd.learning_rate:\n    - 0.1\n    - -1\n")),
              StartsWith("job.yaml:11: sweep.optimizer.sgd.learning_rate[1]: must be at least 0"));
  EXPECT_THAT(
      place_of(file_of("sweep:\n  - seed: 1\n  - sed: 2\n")),
      StartsWith("job.yaml:10: sweep[1].sed: a job has no key 'sed', did you mean 'seed'?"));
  JobFile set = file_of("");
  set.set("sweep.optimizer.sgd.learning_rate=[-1]");
  EXPECT_THAT(place_of(set), StartsWith("--set sweep.optimizer.sgd.learning_rate: "));
}

TEST(Sweep, PathsAreMeantFromTheFilesFolder) {
  JobFile file = file_of("sweep: {objective.logistic.data.libsvm: [a.txt, /b.txt]}\n");
  file.set("objective={logistic: {data: {libsvm: x.txt}, batch_size: 5}}");
  std::vector<std::string> paths;
  Value job = file.checked();
  visit_swept(job, ParamType::path,
              [&](const ParamSpec&, Value& path) { paths.push_back(path.as_text()); });
  ASSERT_EQ(paths.size(), 2U);
  EXPECT_THAT(paths[0], StartsWith("/"));
  EXPECT_EQ(paths[1], "/b.txt");
  EXPECT_EQ(find_path(JobRuns(job).run(0).job, "objective.logistic.data.libsvm")->as_text(),
            paths[0]);
}

}  // namespace
}  // namespace pipewright
