// Every file of examples/ as a user would run it first: pipewright run EXAMPLE --out DIR.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "proto/codec/job_file.hpp"
#include "tests/e2e/processes.hpp"
#include "tests/support/shared.hpp"

namespace pipewright::e2e {
namespace {

namespace fs = std::filesystem;

const fs::path examples = fs::path(PIPEWRIGHT_SOURCE_DIR) / "examples";
const std::string program = std::string(PIPEWRIGHT_BINARY_DIR) + "/bin/pipewright";

struct Expected {
  double first;                  // objective at the start; not a number: whatever the problem has
  double last_max;               // and what it has to get below
  const char* shared = nullptr;  // what it needs of ../shared
  const char* run = "";          // the folder of one of its many runs
  bool needs_ranks = false;      // on the virtual clock it is run in one process
  double loss_last_max = NAN;  // of the last stage, over the last microbatches, if it is asked for
  std::size_t rows_min = 100;  // of objective.csv
};

/// What an example is meant to show. Each has to be named here.
const std::map<std::string, Expected>& expected() {
  static const std::map<std::string, Expected> values{
      {"a9a", {std::log(2.0), 0.34, "data/a9a.libsvm"}},
      {"language_model", {NAN, 2, nullptr, "", false, 2, 10}},
      {"local_sgd", {NAN, 0.1}},
      {"minimal", {NAN, 1e-3}},
      {"pipedream", {NAN, 1e-3}},
      {"real_clock", {NAN, 1, nullptr, "", true}},
      {"straggler", {NAN, 5}},
      {"sweep", {NAN, 0.1, nullptr, "run-0025"}},
  };
  return values;
}

std::vector<std::string> names() {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(examples)) {
    if (entry.path().extension() == ".yaml") found.push_back(entry.path().stem().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Mean of the last `count` values of a last_stage_loss.csv.
double mean_of_last_losses(const fs::path& path, std::size_t count) {
  const auto rows = read_numbers(path.string());
  if (rows.size() < count) return INFINITY;
  double sum = 0;
  for (std::size_t i = rows.size() - count; i < rows.size(); ++i) sum += rows[i].at(2);
  return sum / static_cast<double>(count);
}

class Example : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "pipewright-example-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
};

TEST_P(Example, RunsAndItsObjectiveFalls) {
  const auto at = expected().find(GetParam());
  ASSERT_NE(at, expected().end()) << "say above what examples/" << GetParam() << ".yaml reaches";
  const Expected& want = at->second;
  if (want.shared != nullptr) {
    PIPEWRIGHT_NEEDS_SHARED(want.shared);
  }
  const fs::path job = examples / (GetParam() + ".yaml");
  const fs::path out = folder_ / "out";
  std::vector<std::string> command{program, "run", job.string(), "--out", out.string()};
  if (want.needs_ranks) {
    const Outcome refused = run(command);
    EXPECT_EQ(refused.status, 2) << refused.err;
    EXPECT_THAT(refused.err, ::testing::HasSubstr("pipewright submit"));
    for (const char* set : {"clock=virtual", "schedule.pipedream.order=greedy"}) {
      command.insert(command.end(), {"--set", set});
    }
  }
  const Outcome outcome = run(command);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const fs::path files = out / want.run;
  const auto curve = read_numbers((files / "objective.csv").string());
  ASSERT_GT(curve.size(), want.rows_min);
  EXPECT_EQ(curve.front().at(0), 0) << "the curve begins at tick 0";
  if (!std::isnan(want.first)) {
    EXPECT_NEAR(curve.front().at(2), want.first, 1e-9);
  }
  EXPECT_LT(curve.back().at(2), want.last_max);
  if (!std::isnan(want.loss_last_max)) {
    EXPECT_LT(mean_of_last_losses(files / "last_stage_loss.csv", 50), want.loss_last_max);
  }
  for (const char* file : {"last_stage_loss.csv", "weights.npy", "schedule.csv", "timeline.csv"}) {
    EXPECT_GT(fs::file_size(files / file), 0u) << file;
  }
  const Value summary = JobFile::read((files / "summary.json").string()).tree();
  EXPECT_FALSE(summary.at("diverged").as_bool());
}

TEST_P(Example, IsValid) {
  const auto at = expected().find(GetParam());
  ASSERT_NE(at, expected().end());
  if (at->second.shared != nullptr) {
    PIPEWRIGHT_NEEDS_SHARED(at->second.shared);
  }
  const Outcome outcome = run({program, "validate", (examples / (GetParam() + ".yaml")).string()});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(Examples, Example, ::testing::ValuesIn(names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace pipewright::e2e
