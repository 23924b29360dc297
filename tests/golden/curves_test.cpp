// Curves against the paper authors' simulator, row by row (../shared/golden/README.md).
#include <cmath>

#include "tests/support/runs.hpp"

namespace pipewright {
namespace {

/// Tolerance of the golden README: |a - b| <= 1e-9 |b| + 1e-14 f(start).
void expect_curve(const std::vector<CurveRow>& curve, const std::string& golden_csv) {
  const auto golden = read_numbers(shared_path("golden/" + golden_csv));
  ASSERT_EQ(curve.size(), golden.size());
  const double start = golden.front()[1];
  for (std::size_t i = 0; i < golden.size(); ++i) {
    ASSERT_EQ(curve[i].tick, static_cast<std::int64_t>(golden[i][0]));
    const double expected = golden[i][1];
    ASSERT_LE(std::abs(curve[i].value - expected), 1e-9 * std::abs(expected) + 1e-14 * start)
        << golden_csv << " tick " << i << ": " << curve[i].value << ", golden " << expected;
  }
}

struct Case {
  std::string experiment, objective;
  double l2;
  std::int64_t batch_size;
  int stages;
  std::int64_t microbatches;
  double learning_rate;
};

class GoldenPipeDream : public testing::TestWithParam<Case> {};

TEST_P(GoldenPipeDream, CurveIsTheSimulatorsTickByTick) {
  const Case& c = GetParam();
  PIPEWRIGHT_NEEDS_SHARED("golden/" + c.experiment + "_pd.csv");
  Value job = golden_job(c.experiment, c.objective, c.batch_size, "pipedream",
                         pipedream_parameters(c.stages, c.microbatches), c.learning_rate);
  if (c.l2 > 0) set_path(job, "objective." + c.objective + ".l2", c.l2);
  Recorder recorder;
  run_job(job, recorder);
  expect_curve(recorder.curve, c.experiment + "_pd.csv");
}

INSTANTIATE_TEST_SUITE_P(
    All, GoldenPipeDream,
    testing::Values(Case{"quadratic_tiny", "quadratic", 0, 5, 4, 48, 0.02},
                    Case{"logistic_tiny", "logistic", 1e-3, 5, 4, 48, 0.2},
                    Case{"nesterov_quadratic_s16", "quadratic", 0, 5, 16, 600, 0.00390625},
                    Case{"logistic_s16", "logistic", 1e-4, 5, 16, 400, 0.03125},
                    Case{"quadratic_s8", "quadratic", 0, 30, 8, 400, 0.0625}),
    [](const auto& info) { return info.param.experiment; });

}  // namespace
}  // namespace pipewright
