// The language model against PyTorch 1.13 and the authors' simulator (../shared/golden/README.md).
#include <yaml-cpp/yaml.h>

#include <cmath>
#include <fstream>

#include "core/data/npy.hpp"
#include "tests/support/chain.hpp"
#include "tests/support/language_model.hpp"
#include "tests/support/runs.hpp"

namespace pipewright {
namespace {

std::vector<float> numbers_of(const std::string& name) {
  std::ifstream in(shared_path("golden/" + name), std::ios::binary);
  return read_npy<float>(in, name).values;
}

class LanguageModel : public testing::Test {
 protected:
  void SetUp() override { PIPEWRIGHT_NEEDS_SHARED("golden/lm_tiny.json"); }

  const YAML::Node& experiment() {
    if (!experiment_) experiment_ = YAML::LoadFile(shared_path("golden/lm_tiny.json"));
    return experiment_;
  }

 private:
  YAML::Node experiment_{YAML::NodeType::Undefined};
};

TEST_F(LanguageModel, StartsWithTheLossTheObjectiveAndTheGradientsOfPyTorch) {
  DiskFiles files;
  const int stages = experiment()["stages"].as<int>();
  const auto objective = load_objective("transformer", lm_tiny_parameters(), stages, files);
  EXPECT_EQ(objective->shape().batches, experiment()["num_batches"].as<std::int64_t>());
  Chain chain(*objective);
  for (int s = 0; s < stages; ++s) {
    const auto start = numbers_of("lm_stage" + std::to_string(s) + "_init.npy");
    Tensor& weights = chain.weights[static_cast<std::size_t>(s)];
    ASSERT_EQ(weights.elements(), static_cast<std::int64_t>(start.size())) << "stage " << s;
    std::copy(start.begin(), start.end(), weights.data<float>());
  }
  EXPECT_NEAR(chain.evaluate(1), experiment()["objective_at_init"].as<double>(), 1e-6);
  EXPECT_NEAR(chain.forward(Batch(0)), experiment()["loss_batch0_at_init"].as<double>(), 1e-6);
  chain.backward(Batch(0));
  for (int s = 0; s < stages; ++s) {
    const auto expected = numbers_of("lm_stage" + std::to_string(s) + "_grad_batch0.npy");
    const auto* found = chain.gradients[static_cast<std::size_t>(s)].data<float>();
    double norm_sq = 0, difference_sq = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      norm_sq += std::pow(static_cast<double>(expected[i]), 2);
      difference_sq +=
          std::pow(static_cast<double>(found[i]) - static_cast<double>(expected[i]), 2);
    }
    EXPECT_LE(std::sqrt(difference_sq), 1e-4 * std::sqrt(norm_sq)) << "stage " << s;
  }
}

/// The step of a row is the tick in which the last stage's forward starts; forwards take one.
void expect_losses(const std::vector<CurveRow>& losses, const std::string& golden_csv) {
  const auto golden = read_numbers(shared_path("golden/" + golden_csv));
  ASSERT_EQ(losses.size(), golden.size());
  for (std::size_t i = 0; i < golden.size(); ++i) {
    ASSERT_EQ(losses[i].tick - 1, static_cast<std::int64_t>(golden[i][0]));
    ASSERT_NEAR(losses[i].value, golden[i][1], 1e-5 * golden[i][1]) << golden_csv << ", row " << i;
  }
}

TEST_F(LanguageModel, FollowsTheSimulatorsCurvesRowByRow) {
  int checked = 0;
  for (const YAML::Node& run : experiment()["runs"]) {
    const std::string id = run["id"].as<std::string>();
    SCOPED_TRACE(id);
    const Value job =
        run["method"].as<std::string>() == "pipedream"
            ? lm_tiny_job("pipedream")
            : lm_tiny_job("local_sgd", run["replicas"].as<int>(), run["local_steps"].as<int>());
    Recorder recorder;
    run_job(job, recorder);
    expect_losses(recorder.losses, "lm_" + id + ".csv");
    const double expected = run["final_full_objective"].as<double>();
    ASSERT_FALSE(recorder.curve.empty());
    EXPECT_NEAR(recorder.curve.back().value, expected, 1e-5 * expected);
    EXPECT_NEAR(recorder.losses.back().value, run["last_forward_loss"].as<double>(),
                1e-5 * expected);
    ++checked;
  }
  EXPECT_EQ(checked, 3);
}

}  // namespace
}  // namespace pipewright
