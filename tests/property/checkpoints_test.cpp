// A run that is killed at a checkpoint and goes on from it in new objects leaves the same bytes as
// one that was not: of every schedule and every objective, at every tick that can be one.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/random.hpp"
#include "core/train/optimizer.hpp"
#include "core/train/result_files.hpp"
#include "tests/support/checkpoints.hpp"
#include "tests/support/memory_files.hpp"
#include "tests/support/runs.hpp"
#include "tests/support/schedule_cases.hpp"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

MemoryFiles test_files() {
  std::string libsvm;
  std::vector<double> tokens;
  RandomStream draws(1, DrawKind::generated_data);
  for (int i = 0; i < 41; ++i) {
    libsvm += draws.below(2) == 0 ? "+1" : "-1";
    for (int j = 0; j < 9; ++j) {
      if ((i + j) % 2 == 0) {
        libsvm += " " + std::to_string(j + 1) + ":" + std::to_string(draws.normal());
      }
    }
    libsvm += "\n";
    for (int j = 0; j < 4; ++j) tokens.push_back((i * i + j + i / 7) % 7);
  }
  tokens.push_back(0);
  MemoryFiles files;
  files.put("a.libsvm", libsvm);
  files.put("tokens.npy", npy_bytes("(165,)", tokens));
  return files;
}

class Folder {
 public:
  Folder()
      : path_(fs::temp_directory_path() / ("pipewright-checkpoints-" + std::to_string(getpid()))) {
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  std::string path() const { return path_.string(); }

  /// Name and bytes of everything in it.
  std::map<std::string, std::string> contents() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::directory_iterator(path_)) {
      std::ifstream in(entry.path(), std::ios::binary);
      std::ostringstream out;
      out << in.rdbuf();
      all[entry.path().filename().string()] = out.str();
    }
    return all;
  }

 private:
  fs::path path_;
};

using Contents = std::map<std::string, std::string>;

Contents files_of(const JobConfig& config, CheckpointStore* store) {
  const Folder folder;
  MemoryFiles inputs = test_files();
  ResultFiles files(folder.path());
  RunHooks hooks;
  hooks.checkpoints = store;
  const RunResult result = run_in_process(config, inputs, {&files}, hooks);
  files.finish(result.summary, result.weights);
  return folder.contents();
}

/// Kills the run whenever `kill_after` further checkpoints are complete, until it comes to its end.
Contents files_of_killed(const JobConfig& config, MemoryCheckpoints& store, int kill_after) {
  while (true) {
    store.resume(kill_after);
    const std::size_t before = store.completed().size();
    MemoryFiles inputs = test_files();
    RunHooks hooks;
    hooks.checkpoints = &store;
    try {
      run_in_process(config, inputs, {}, hooks);
    } catch (const Killed&) {
      EXPECT_EQ(store.completed().size(), before + static_cast<std::size_t>(kill_after));
      continue;
    }
    store.resume(0);
    return files_of(config, &store);
  }
}

/// The job as it is, then killed at checkpoints of several distances. Gives how many there were.
std::size_t expect_same_bytes(const Value& job, const std::string& what,
                              std::initializer_list<const char*> rules = {"{every: 1}",
                                                                          "{every: 7}"}) {
  std::size_t count = 0;
  const Contents undisturbed = files_of(JobConfig::from(check_job(job)), nullptr);
  EXPECT_TRUE(undisturbed.contains("objective.csv"));
  for (const char* rule : rules) {
    Value tree = job;
    tree.set("checkpoint", parameters_from(rule));
    const JobConfig config = JobConfig::from(check_job(tree));
    MemoryCheckpoints store;
    SCOPED_TRACE(what + ", checkpoint " + rule);
    const Contents killed = files_of_killed(config, store, 1);
    count += store.completed().size();
    EXPECT_EQ(killed.size(), undisturbed.size());
    for (const auto& [name, bytes] : undisturbed) {
      EXPECT_TRUE(killed.contains(name) && killed.at(name) == bytes)
          << what << ", checkpoint " << rule << ": " << name << " differs\n"
          << (bytes.size() < 4000 ? bytes + "\n" + killed.at(name) : "");
    }
    if (testing::Test::HasFailure()) return count;
  }
  return count;
}

TEST(Checkpoints, OfEveryScheduleLeaveTheSameBytes) {
  std::size_t count = 0;
  for (const ScheduleCase& one : all_schedule_cases()) {
    count += expect_same_bytes(job_with(one), name_of(one));
    if (HasFailure()) return;
  }
  EXPECT_GE(count, 500u);
}

TEST(Checkpoints, OfEveryScheduleUnderLatencyNoiseAndTheoryLeaveTheSameBytes) {
  for (const ScheduleCase& one : all_schedule_cases()) {
    Value job = job_with(one);
    set_path(job, "observe.theory", true);
    set_path(job, "observe.objective", parameters_from("{every_updates: 1}"));
    set_path(job, "optimizer", parameters_from("{adamw: {learning_rate: 0.01, clip_norm: 0.5}}"));
    set_path(job, "noise.gradient", 0.1);
    set_path(job, "shuffle", true);
    set_path(job, "target", 0.5);
    set_path(job, "cost",
             parameters_from("{forward: 3, backward: 5, update: 1,"
                             " jitter: {uniform: {low: 0, high: 4}}}"));
    set_path(job, "link", parameters_from("{latency: 7, jitter: {exponential: {mean: 3}}}"));
    expect_same_bytes(job, name_of(one), {"{every: 5}", "{every_updates: 3}"});
    if (HasFailure()) return;
  }
}

TEST(Checkpoints, AreNotTakenWhileASyncIsHalfDone) {
  Value job = job_with({"local_sgd", parameters_from("{stages: 3, replicas: 2, local_steps: 2,"
                                                     " microbatches: 24, sync: ring}")});
  // Blocks of 8, 8 and 7 numbers on a slow link: the stages' syncs end at different times.
  set_path(job, "link", parameters_from("{latency: 5us, bandwidth: 1Mbit/s}"));
  set_path(job, "cost", parameters_from("{forward: 10us, backward: 20us}"));
  set_path(job, "observe.objective", parameters_from("{every_updates: 1}"));
  job.set("checkpoint", parameters_from("{every: 5us}"));
  const JobConfig config = JobConfig::from(check_job(job));
  Recorder recorder;
  MemoryFiles inputs = test_files();
  run_in_process(config, inputs, {&recorder});
  std::vector<Tick> ends;
  for (const TimelineEntry& entry : recorder.timeline) {
    if (entry.action.kind == ActionKind::sync) ends.push_back(entry.end);
  }
  ASSERT_EQ(ends.size(), 6u * 3);
  ASSERT_LT(ends[0] + Tick(5000), ends[2]) << "no tick of a checkpoint lies between the first two";
  MemoryCheckpoints store;
  files_of_killed(config, store, 1);
  EXPECT_GE(store.completed().size(), 50u);
  for (const Tick tick : store.completed()) {
    EXPECT_EQ(std::count_if(ends.begin(), ends.end(), [&](Tick end) { return end <= tick; }) % 3, 0)
        << "at tick " << tick;
  }
  expect_same_bytes(job, "ring", {"{every: 5us}"});
}

/// Two or more of every objective that is registered.
std::map<std::string, std::vector<const char*>> problems() {
  return {{"quadratic",
           {"{data: {libsvm: a.libsvm}, batch_size: 3}",
            "{generate: {kind: tridiagonal, examples: 30, parameters: 5}, batch_size: 30}"}},
          {"logistic",
           {"{data: {libsvm: a.libsvm}, batch_size: 4}",
            "{data: {libsvm: a.libsvm}, l2: 0.1, batch_size: 1}"}},
          {"transformer",
           {"{data: {tokens_npy: tokens.npy}, batch_size: 2, sequence_length: 4, embedding: 8,"
            " heads: 2, validation_fraction: 0.2}",
            "{data: {tokens_npy: tokens.npy}, batch_size: 1, sequence_length: 4, embedding: 8,"
            " heads: 2, recompute: true}"}}};
}

TEST(Checkpoints, OfEveryObjectiveAndOptimizerLeaveTheSameBytes) {
  const auto all = problems();
  for (const ObjectiveKind& kind : ObjectiveRegistry::instance().all()) {
    ASSERT_TRUE(all.contains(kind.kind)) << "problems() has no case of '" << kind.kind << "'";
    for (const char* problem : all.at(kind.kind)) {
      for (const char* schedule :
           {"{pipedream: {stages: 4, microbatches: 13}}",
            "{rpd: {stages: 3, updates: 20, delay_max: 6}}",
            "{local_sgd: {stages: 3, replicas: 2, local_steps: 2, microbatches: 14}}"}) {
        for (const char* optimizer :
             {"{sgd: {learning_rate: 0.05, momentum: 0.9, nesterov: true, weight_decay: 0.01}}",
              "{adamw: {learning_rate: 0.01}}"}) {
          Value job = Value::map();
          set_path(job, "objective." + kind.kind, parameters_from(problem));
          job.set("schedule", parameters_from(schedule));
          job.set("optimizer", parameters_from(optimizer));
          set_path(job, "observe.objective.every_ticks", 3);
          expect_same_bytes(job, std::string(problem) + " " + schedule + " " + optimizer,
                            {"{every: 1}", "{every_updates: 4}"});
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST(Checkpoints, ARunThatDivergesDoesSoAtTheSameTickAfterOne) {
  Value job = job_with({"pipedream", parameters_from("{stages: 3, microbatches: 400}")});
  set_path(job, "optimizer.sgd.learning_rate", 1e6);
  EXPECT_GE(expect_same_bytes(job, "diverging", {"{every: 3}"}), 2u);
}

JobConfig long_job(const char* rule) {
  Value job = job_with({"pipedream", parameters_from("{stages: 3, microbatches: 1000}")});
  set_path(job, "observe", parameters_from("{objective: {every_ticks: 1}}"));
  job.set("checkpoint", parameters_from(rule));
  return JobConfig::from(check_job(job));
}

TEST(Checkpoints, ComeAtMultiplesOfTheirDistance) {
  MemoryCheckpoints store;
  files_of(long_job("{every: 400}"), &store);
  EXPECT_EQ(store.completed(),
            (std::vector{Tick(400), Tick(800), Tick(1200), Tick(1600), Tick(2000)}));
}

TEST(Checkpoints, DoNotGrowWithTheRun) {
  MemoryCheckpoints store;
  files_of(long_job("{every: 400}"), &store);
  const auto bytes = [&](Tick tick) {
    std::size_t sum = 0;
    for (const auto& [row, state] : store.parts().at(tick)) sum += state.size();
    return sum;
  };
  // Up to a version that an observation holds.
  EXPECT_LT(bytes(Tick(1600)), 2 * bytes(Tick(800)));
}

TEST(Checkpoints, OneThatIsCutShortOrOfAnotherRowIsRefused) {
  const JobConfig config = long_job("{every: 400}");
  MemoryCheckpoints store(1);
  EXPECT_THROW(files_of(config, &store), Killed);
  const auto whole = store.parts();
  auto& rows = store.parts().begin()->second;
  const auto fault = [&] {
    store.resume(0);
    try {
      files_of(config, &store);
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  rows[Row(1)].resize(rows[Row(1)].size() / 2);
  EXPECT_THAT(fault(), testing::HasSubstr("ends"));
  rows[Row(1)] = whole.begin()->second.at(Row(2));
  EXPECT_THAT(fault(), testing::HasSubstr("of row 2"));
  // Another plan: what was stored does not fit it.
  store.parts() = whole;
  Value shorter = config.tree;
  set_path(shorter, "schedule.pipedream.microbatches", 20);
  store.resume(0);
  EXPECT_THROW(files_of(JobConfig::from(check_job(shorter)), &store), DataError);
}

std::string refusal(const char* rule, const char* clock = "virtual") {
  Value job = job_with({"pipedream", parameters_from("{stages: 3, microbatches: 20}")});
  set_path(job, "observe", Value::map());
  job.set("clock", clock);
  job.set("checkpoint", parameters_from(rule));
  try {
    check_job(job);
  } catch (const ParamError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Checkpoints, ADistanceThatIsNoneIsRefused) {
  EXPECT_EQ(refusal("{every: 5}"), "accepted");
  EXPECT_THAT(refusal("{every: 0}"), testing::HasSubstr("checkpoint.every"));
  EXPECT_THAT(refusal("{every: 0ms}"), testing::HasSubstr("above 0"));
  EXPECT_THAT(refusal("{every: -3}"), testing::HasSubstr("checkpoint"));
  EXPECT_THAT(refusal("{every_updates: 0}"), testing::HasSubstr("checkpoint.every_updates"));
  EXPECT_THAT(refusal("{each: 5}"), testing::HasSubstr("every"));
  EXPECT_THAT(refusal("{every: 5ms}", "real"), testing::HasSubstr("clock: virtual"));
}

}  // namespace
}  // namespace pipewright
