// Smoothness, optimum, gradients and RPD's bound against the golden numbers.
#include <gmock/gmock.h>
#include <yaml-cpp/yaml.h>

#include <cmath>

#include "tests/support/runs.hpp"

namespace pipewright {
namespace {

class GoldenTheory : public testing::TestWithParam<const char*> {};

TEST_P(GoldenTheory, SmoothnessAndOptimumAreTheAuthors) {
  const std::string name = GetParam();
  PIPEWRIGHT_NEEDS_SHARED("golden/" + name + ".json");
  const YAML::Node golden = YAML::LoadFile(shared_path("golden/" + name + ".json"));
  const std::string kind =
      golden["objective"].as<std::string>().starts_with("quadratic") ? "quadratic" : "logistic";
  Value job = golden_job(name, kind, golden["batch_size"].as<std::int64_t>(), "pipedream",
                         pipedream_parameters(golden["stages"].as<int>(), 1), 0.1);
  if (golden["l2"]) set_path(job, "objective.logistic.l2", golden["l2"].as<double>());
  DiskFiles files;
  const auto objective = JobConfig::from(check_job(job)).load_objective(files);
  const ObjectiveTheory theory = objective->theory();
  ASSERT_TRUE(theory.smoothness && theory.optimum);
  const double smoothness = golden["smoothness_L"].as<double>();
  EXPECT_NEAR(*theory.smoothness, smoothness, 1e-12 * smoothness);
  const double optimum = golden["optimal_value"].as<double>();
  const double rounding = 1e-14 * golden["objective_at_zero"].as<double>();
  EXPECT_NEAR(*theory.optimum, optimum, 1e-9 * optimum + rounding);
  // The authors' minimum of logistic_s16 is 1.4e-12 above the true one; ours is never above theirs.
  EXPECT_LE(*theory.optimum, optimum + rounding);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTheory,
                         testing::Values("quadratic_tiny", "logistic_tiny", "quadratic_s8",
                                         "nesterov_quadratic_s16", "logistic_s16"),
                         [](const auto& info) { return std::string(info.param); });

// arXiv 2606.03498: the mean of ||grad f(w_k)||^2 stays below
// 2 S (f0 - f*) / (gamma K) + gamma S L G^2 + gamma^2 L^2 delta^2 G^2.
TEST(RpdBound, IsAboveTheRunningMeanInTheAuthorsRuns) {
  PIPEWRIGHT_NEEDS_SHARED("golden/quadratic_s8.json");
  const YAML::Node golden = YAML::LoadFile(shared_path("golden/quadratic_s8.json"));
  int runs = 0;
  for (const YAML::Node& run : golden["runs"]) {
    if (run["method"].as<std::string>() != "rpd") continue;
    ++runs;
    Value schedule = Value::map();
    schedule.set("stages", 8);
    schedule.set("updates", run["iterations"].as<std::int64_t>());
    set_path(schedule, "delays.file",
             shared_path("golden/quadratic_s8_" + run["id"].as<std::string>() + "_samples.csv"));
    Value job = golden_job("quadratic_s8", "quadratic", golden["batch_size"].as<std::int64_t>(),
                           "rpd", schedule, run["learning_rate"].as<double>());
    set_path(job, "observe", one_of("objective", one_of("every_updates", 1)));
    set_path(job, "observe.theory", true);
    Recorder recorder;
    const RunResult result = run_job(job, recorder);
    ASSERT_EQ(recorder.theory_rows.size(), recorder.curve.size());
    double sum = 0;
    double previous_gap = INFINITY;
    for (std::size_t i = 0; i < recorder.theory_rows.size(); ++i) {
      const TheoryRow& row = recorder.theory_rows[i];
      ASSERT_EQ(row.updates.value, static_cast<std::int64_t>(i));
      sum += row.gradient_norm_sq;
      ASSERT_DOUBLE_EQ(row.gradient_norm_sq_mean, sum / static_cast<double>(i + 1));
      ASSERT_EQ(row.bound.has_value(), i > 0);
      if (row.bound) {
        ASSERT_GE(*row.bound, row.gradient_norm_sq_mean) << "update " << i;
      }
      // ||grad f||^2 <= 2 L (f - f*): of any smooth function.
      const double smoothness = golden["smoothness_L"].as<double>();
      ASSERT_LE(row.gradient_norm_sq, 2 * smoothness * *row.gap * (1 + 1e-9) + 1e-20);
      previous_gap = *row.gap;
    }
    EXPECT_LT(previous_gap, 26.8);
    const Value& theory = result.summary.at("theory");
    EXPECT_EQ(theory.at("bound").as_real(), *recorder.theory_rows.back().bound);
    EXPECT_FALSE(theory.has("bound_left_out"));
  }
  EXPECT_EQ(runs, 3);
}

TEST(Theory, OfTheSparseA9aIsKnown) {
  PIPEWRIGHT_NEEDS_SHARED("data/a9a.libsvm");
  Value job = Value::map();
  set_path(job, "objective.logistic.data.libsvm", shared_path("data/a9a.libsvm"));
  set_path(job, "objective.logistic.batch_size", 64);
  set_path(job, "objective.logistic.l2", 1e-4);
  set_path(job, "schedule.pipedream.stages", 4);
  set_path(job, "schedule.pipedream.microbatches", 300);
  set_path(job, "optimizer.sgd.learning_rate", 0.1);
  set_path(job, "observe", one_of("objective", one_of("every_ticks", 50)));
  set_path(job, "observe.theory", true);
  set_path(job, "target", 0.4);
  Recorder recorder;
  const RunResult result = run_job(job, recorder);
  for (const TheoryRow& row : recorder.theory_rows) {
    ASSERT_TRUE(row.gap);
    ASSERT_GT(*row.gap, 0);
    // Strong convexity, mu = l2: f - f* <= ||grad f||^2 / (2 mu).
    ASSERT_LE(*row.gap, row.gradient_norm_sq / 2e-4);
  }
}

}  // namespace
}  // namespace pipewright
