// `pipewright run --resume` after kill -9: real processes, and files compared byte by byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "core/base/text.hpp"
#include "core/train/result_files.hpp"
#include "proto/codec/json.hpp"
#include "tests/e2e/processes.hpp"

namespace pipewright::e2e {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string program = std::string(PIPEWRIGHT_BINARY_DIR) + "/bin/pipewright";

/// Computes for a second or more, and can be stored some 40 times meanwhile.
constexpr const char* long_job = R"(
objective:
  quadratic: {generate: {kind: random, examples: 800, parameters: 1600}, batch_size: 100}
schedule:
  pipedream: {stages: 4, microbatches: 4000}
optimizer: {sgd: {learning_rate: 1e-4, momentum: 0.5}}
checkpoint: {every: 200}
)";

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

class Resume : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "pipewright-resume-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    std::ofstream(folder_ / "job.yaml") << long_job;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path path(const std::string& name) const { return folder_ / name; }

  std::vector<std::string> command(const std::string& out,
                                   const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{program, "run", path("job.yaml"), "--out", path(out)};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  /// Ticks of the checkpoints whose row 0 is stored, ascending.
  std::vector<std::int64_t> ticks(const std::string& out) const {
    std::vector<std::int64_t> all;
    std::error_code gone;
    for (const auto& entry : fs::directory_iterator(path(out) / "checkpoint", gone)) {
      const std::string name = entry.path().filename().string();
      const auto tick = name.starts_with("values-") ? parse_integer(name.substr(7)) : std::nullopt;
      if (tick) all.push_back(*tick);
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  /// Ends the run by SIGKILL when it has stored a checkpoint of a later tick than `after`.
  void kill_after_checkpoint(const std::string& out, std::int64_t after,
                             const std::vector<std::string>& more = {}) {
    Running running(command(out, more));
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(100);
    while (ticks(out).empty() || ticks(out).back() <= after) {
      ASSERT_TRUE(alive(running.pid())) << "ended before its next checkpoint";
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      std::this_thread::yield();
    }
    running.signal(SIGKILL);
    ASSERT_EQ(running.wait().status, 128 + SIGKILL) << "ended before it could be killed";
  }

  /// Every file but the summary has the same bytes, and of that all but where it came from.
  void expect_same(const fs::path& one, const fs::path& other) {
    for (const std::string& name : ResultFiles::names()) {
      ASSERT_EQ(fs::exists(one / name), fs::exists(other / name)) << name;
      if (name != "summary.json") {
        EXPECT_TRUE(content(one / name) == content(other / name)) << name;
      }
    }
    Value a = value_from_json(content(one / "summary.json"));
    Value b = value_from_json(content(other / "summary.json"));
    for (Value* summary : {&a, &b}) {
      std::erase_if(summary->as_map(), [](const auto& entry) {
        return entry.first == "wall_seconds" || entry.first == "continued_from_ticks";
      });
    }
    EXPECT_EQ(to_json(a), to_json(b));
    EXPECT_FALSE(fs::exists(one / "checkpoint"));
    EXPECT_FALSE(fs::exists(other / "checkpoint"));
  }

  fs::path folder_;
};

TEST_F(Resume, ARunThatWasKilledThreeTimesLeavesTheSameBytes) {
  ASSERT_EQ(run(command("whole")).status, 0);
  std::int64_t last = 0;
  for (int i = 0; i < 3; ++i) {
    kill_after_checkpoint("killed", last, {"--resume"});
    if (HasFatalFailure()) return;
    last = ticks("killed").back();
  }
  const Outcome outcome = run(command("killed", {"--resume"}));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("going on from the checkpoint of tick "));
  expect_same(path("whole"), path("killed"));
  const Value summary = value_from_json(content(path("killed") / "summary.json"));
  EXPECT_GE(summary.at("continued_from_ticks").as_list().size(), 2u);

  // Once more there is nothing to do.
  const std::string before = content(path("killed") / "summary.json");
  const Outcome again = run(command("killed", {"--resume"}));
  EXPECT_EQ(again.status, 0);
  EXPECT_THAT(again.err, HasSubstr("has ended"));
  EXPECT_EQ(content(path("killed") / "summary.json"), before);
}

TEST_F(Resume, ADamagedCheckpointIsRefusedAndTheOneBeforeIsUsed) {
  ASSERT_EQ(run(command("whole")).status, 0);
  kill_after_checkpoint("killed", 400);
  if (HasFatalFailure()) return;
  // Of the newest whole one: its rows may be there before its values.
  const std::int64_t newest = ticks("killed").back();
  const fs::path part = path("killed") / "checkpoint" / ("row-0-" + std::to_string(newest));
  if (!fs::exists(part)) {
    std::ofstream(part) << "pipewright checkpoint {}\n";
  } else {
    std::fstream file(part, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-100, std::ios::end);
    file << "damage";
  }
  const Outcome outcome = run(command("killed", {"--resume"}));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err,
              HasSubstr("the checkpoint of tick " + std::to_string(newest) + " is not used: "));
  EXPECT_THAT(outcome.err, HasSubstr("going on from the checkpoint of tick "));
  EXPECT_THAT(outcome.err, Not(HasSubstr("going on from the checkpoint of tick " +
                                         std::to_string(newest) + "\n")));
  expect_same(path("whole"), path("killed"));
}

TEST_F(Resume, ACheckpointOfAnotherJobIsRefused) {
  const std::vector<std::string> other{"--set", "optimizer.sgd.learning_rate=2e-4"};
  ASSERT_EQ(run(command("whole", other)).status, 0);
  kill_after_checkpoint("killed", 0);
  if (HasFatalFailure()) return;
  std::vector<std::string> resume = other;
  resume.emplace_back("--resume");
  const Outcome outcome = run(command("killed", resume));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("it is of another job"));
  EXPECT_THAT(outcome.err, HasSubstr("the run begins at its beginning"));
  expect_same(path("whole"), path("killed"));
}

TEST_F(Resume, ARunThatIsNotToGoOnForgetsOldCheckpoints) {
  kill_after_checkpoint("killed", 0);
  if (HasFatalFailure()) return;
  const Outcome outcome = run(command("killed", {"--set", "schedule.pipedream.microbatches=30"}));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("replacing the earlier run"));
  EXPECT_FALSE(fs::exists(path("killed") / "checkpoint"));
}

TEST_F(Resume, OfASweepOnlyWhatHasNotEndedIsDone) {
  std::ofstream(path("job.yaml"), std::ios::app)
      << "sweep: {schedule.pipedream.microbatches: [40, 4000, 3000]}\n";
  ASSERT_EQ(run(command("whole", {"--jobs", "1"})).status, 0);
  {
    Running running(command("killed", {"--jobs", "1"}));
    const fs::path second = path("killed") / "run-0001" / "checkpoint" / "values-400";
    while (!fs::exists(second)) {
      ASSERT_TRUE(alive(running.pid()));
      std::this_thread::yield();
    }
    running.signal(SIGKILL);
    ASSERT_EQ(running.wait().status, 128 + SIGKILL);
  }
  const std::string first = content(path("killed") / "run-0000" / "summary.json");
  ASSERT_FALSE(first.empty());
  const Outcome outcome = run(command("killed", {"--resume", "--jobs", "2"}));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(content(path("killed") / "run-0000" / "summary.json"), first);
  for (const char* name : {"run-0000", "run-0001", "run-0002"}) {
    expect_same(path("whole") / name, path("killed") / name);
  }
  EXPECT_EQ(content(path("whole") / "runs.csv"), content(path("killed") / "runs.csv"));
  const Value summary = value_from_json(content(path("killed") / "run-0001" / "summary.json"));
  EXPECT_EQ(summary.at("continued_from_ticks").as_list().size(), 1u);
}

}  // namespace
}  // namespace pipewright::e2e
