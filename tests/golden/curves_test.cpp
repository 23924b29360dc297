// Curves against the paper authors' simulator, row by row (../shared/golden/README.md).
#include <yaml-cpp/yaml.h>

#include <cmath>

#include "tests/support/runs.hpp"

namespace pipewright {
namespace {

/// Tolerance of the golden README: |a - b| <= 1e-9 |b| + 1e-14 f(start).
void expect_curve(const std::vector<CurveRow>& curve, const std::string& golden_csv,
                  bool is_by_updates) {
  const auto golden = read_numbers(shared_path("golden/" + golden_csv));
  ASSERT_EQ(curve.size(), golden.size());
  const double start = golden.front()[1];
  for (std::size_t i = 0; i < golden.size(); ++i) {
    ASSERT_EQ(is_by_updates ? curve[i].updates : curve[i].tick,
              static_cast<std::int64_t>(golden[i][0]));
    const double expected = golden[i][1];
    ASSERT_LE(std::abs(curve[i].value - expected), 1e-9 * std::abs(expected) + 1e-14 * start)
        << golden_csv << " tick " << i << ": " << curve[i].value << ", golden " << expected;
  }
}

/// One run of an experiment's JSON file.
struct Case {
  std::string experiment;
  std::string run;
};

Value job_of(const YAML::Node& experiment, const YAML::Node& run, const std::string& name) {
  const std::string objective =
      experiment["objective"].as<std::string>().starts_with("quadratic") ? "quadratic" : "logistic";
  Value schedule = Value::map();
  schedule.set("stages", experiment["stages"].as<int>());
  std::string method = run["method"].as<std::string>();
  for (const auto& [key, parameter] : {std::pair{"microbatches", "microbatches"},
                                       {"max_in_flight", "in_flight_max"},
                                       {"replicas", "replicas"},
                                       {"local_steps", "local_steps"},
                                       {"iterations", "updates"}}) {
    if (run[key]) schedule.set(parameter, run[key].as<std::int64_t>());
  }
  if (method == "rpd") {
    set_path(schedule, "delays.file",
             shared_path("golden/" + name + "_" + run["id"].as<std::string>() + "_samples.csv"));
  }
  Value job = golden_job(name, objective, experiment["batch_size"].as<std::int64_t>(), method,
                         schedule, run["learning_rate"].as<double>());
  if (experiment["l2"]) set_path(job, "objective.logistic.l2", experiment["l2"].as<double>());
  if (method == "rpd") {
    Value by_updates = Value::map();
    by_updates.set("every_updates", 1);
    set_path(job, "observe.objective", by_updates);
  }
  return job;
}

class GoldenCurve : public testing::TestWithParam<Case> {};

TEST_P(GoldenCurve, IsTheSimulatorsRowByRow) {
  const auto& [name, id] = GetParam();
  PIPEWRIGHT_NEEDS_SHARED("golden/" + name + ".json");
  const YAML::Node experiment = YAML::LoadFile(shared_path("golden/" + name + ".json"));
  for (const YAML::Node& run : experiment["runs"]) {
    if (run["id"].as<std::string>() != id) continue;
    Recorder recorder;
    const RunResult result = run_job(job_of(experiment, run, name), recorder);
    expect_curve(recorder.curve, name + "_" + id + ".csv",
                 run["method"].as<std::string>() == "rpd");
    double square = 0;
    for (std::int64_t i = 0; i < result.weights.elements(); ++i) {
      square += result.weights.data<double>()[i] * result.weights.data<double>()[i];
    }
    const double norm = run["final_weights_l2"].as<double>();
    EXPECT_NEAR(std::sqrt(square), norm, 1e-9 * norm);
    return;
  }
  FAIL() << name << ".json has no run " << id;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const char* id : {"pd", "localsgd_r4_h2", "localsgd_r3_h4", "rpd_d14"}) {
    cases.push_back({"quadratic_tiny", id});
    cases.push_back({"logistic_tiny", id});
  }
  for (const char* id : {"pd", "localsgd_r16_h2", "localsgd_r16_h5", "localsgd_r16_h30"}) {
    cases.push_back({"nesterov_quadratic_s16", id});
    cases.push_back({"logistic_s16", id});
  }
  for (const char* id : {"pd", "rpd_d8", "rpd_d60", "rpd_d180"}) {
    cases.push_back({"quadratic_s8", id});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, GoldenCurve, testing::ValuesIn(all_cases()), [](const auto& info) {
  return info.param.experiment + "_" + info.param.run;
});

// Block updates, one by one, of two runs of the same work.
std::vector<CurveRow> curve_by_updates(Value job) {
  Value by_updates = Value::map();
  by_updates.set("every_updates", 1);
  set_path(job, "observe.objective", by_updates);
  Recorder recorder;
  run_job(job, recorder);
  return recorder.curve;
}

// "Given PipeDream's own stages, batches and exact delays, RPD must equal PipeDream update by
// update, bit for bit" (DESIGN.md section 4).
TEST(RandomizedPipeDream, WithThePipeDreamsDrawsIsPipeDreamBitForBit) {
  for (int stages = 1; stages <= 9; ++stages) {
    Value job = Value::map();
    set_path(job, "objective.quadratic.generate.kind", "random");
    set_path(job, "objective.quadratic.generate.examples", 60);
    set_path(job, "objective.quadratic.generate.parameters", 22);
    set_path(job, "objective.quadratic.batch_size", 5);
    set_path(job, "optimizer.sgd.learning_rate", 0.02);
    const std::int64_t microbatches = 12 * stages + 5;
    Value pipedream = job;
    pipedream.set("schedule", one_of("pipedream", pipedream_parameters(stages, microbatches)));
    Value rpd = job;
    set_path(rpd, "schedule.rpd.stages", stages);
    // A run of that length drains at its end; RPD's draws are those of one that goes on.
    const std::int64_t updates = microbatches * stages - 2 * stages * stages;
    set_path(rpd, "schedule.rpd.updates", updates);
    set_path(rpd, "schedule.rpd.delays", "pipedream");
    const auto expected = curve_by_updates(pipedream);
    const auto curve = curve_by_updates(rpd);
    ASSERT_EQ(curve.size(), static_cast<std::size_t>(updates) + 1);
    for (std::size_t u = 0; u < curve.size(); ++u) {
      ASSERT_EQ(curve[u].updates, static_cast<std::int64_t>(u));
      ASSERT_EQ(curve[u].value, expected[u].value) << "S = " << stages << ", update " << u;
    }
  }
}

}  // namespace
}  // namespace pipewright
