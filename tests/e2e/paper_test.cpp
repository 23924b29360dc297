// The job files of examples/paper: they are valid, and give the numbers that the paper's authors
// printed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "tests/e2e/processes.hpp"
#include "tests/support/shared.hpp"

namespace pipewright::e2e {
namespace {

namespace fs = std::filesystem;

const fs::path folder = fs::path(PIPEWRIGHT_SOURCE_DIR) / "examples/paper";
const std::string program = std::string(PIPEWRIGHT_BINARY_DIR) + "/bin/pipewright";

class Scratch {
 public:
  Scratch() {
    std::string name = (fs::temp_directory_path() / "pipewright-paper-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::bad_alloc();
    path_ = name;
  }
  ~Scratch() { fs::remove_all(path_); }
  fs::path operator/(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

TEST(Paper, EveryJobFileIsValid) {
  PIPEWRIGHT_NEEDS_SHARED("golden/logistic_s16.json");
  int files = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".yaml") continue;
    const Outcome outcome = run({program, "validate", entry.path().string()});
    EXPECT_EQ(outcome.status, 0) << entry.path() << ": " << outcome.err;
    ++files;
  }
  EXPECT_GE(files, 8);
}

/// What stands in a printed table: the objective of a run of a job at tick 1229.
struct Printed {
  std::string name;
  std::string job;
  std::vector<std::string> sets;
  double rate;
  double value;
  double digit;  // the unit of its last digit
};

class PrintedNumber : public ::testing::TestWithParam<Printed> {};

TEST_P(PrintedNumber, ComesOutAtTick1229) {
  PIPEWRIGHT_NEEDS_SHARED("golden/nesterov_quadratic_s16.json");
  const Printed& printed = GetParam();
  const Scratch scratch;
  const fs::path out = scratch / "out";
  std::vector<std::string> command{
      program,
      "run",
      (folder / (printed.job + ".yaml")).string(),
      "--out",
      out.string(),
      "--set",
      "sweep={optimizer.sgd.learning_rate: [" + format_number(printed.rate) + "]}"};
  for (const std::string& set : printed.sets) command.insert(command.end(), {"--set", set});
  const Outcome outcome = run(command);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto curve = read_numbers((out / "run-0000/objective.csv").string());
  const auto row = std::find_if(curve.begin(), curve.end(),
                                [](const std::vector<double>& r) { return r.at(0) == 1229; });
  ASSERT_NE(row, curve.end());
  EXPECT_NEAR(row->at(2), printed.value, 0.5 * printed.digit);
}

Printed local_sgd(int local_steps, double rate, double value, double digit) {
  const std::string steps = std::to_string(local_steps);
  return {"LocalSgdH" + steps,
          "nesterov-local-sgd",
          {"schedule.local_sgd.local_steps=" + steps},
          rate,
          value,
          digit};
}

INSTANTIATE_TEST_SUITE_P(
    Paper, PrintedNumber,
    ::testing::Values(Printed{"PipeDream", "nesterov-pipedream", {}, 0.00390625, 2.7312, 1e-4},
                      local_sgd(2, 0.03125, 19.518, 1e-3), local_sgd(5, 0.03125, 22.504, 1e-3),
                      local_sgd(30, 0.00390625, 268.65, 1e-2)),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace pipewright::e2e
