// One job, any number of ranks, the same bytes (DESIGN.md section 3): each rank count is compared
// with the run in one process.
#include "proto/codec/job_file.hpp"
#include "tests/mpi/pool_runs.hpp"
#include "tests/support/schedule_cases.hpp"

namespace pipewright {
namespace {

/// Runs `job` on all ranks and, on rank 0, compares its files with those of a run in one process.
void expect_same_bytes(const Value& job) {
  const TemporaryFolder folder;
  const auto result = run_on_ranks(job, folder / "ranks");
  if (!result) return;
  ASSERT_EQ(result->outcome, RunOutcome::succeeded) << result->message;
  run_here(job, folder / "alone");
  for (const char* name :
       {"weights.npy", "objective.csv", "timeline.csv", "schedule.csv", "last_stage_loss.csv"}) {
    const std::string ranks = bytes_of((folder / "ranks") + "/" + name);
    EXPECT_FALSE(ranks.empty()) << name;
    EXPECT_TRUE(ranks == bytes_of((folder / "alone") + "/" + name)) << name << " differs";
  }
}

Value generated(int stages, int microbatches, const char* more = "{}") {
  JobFile file = JobFile::parse(more, "test");
  Value job = file.tree();
  set_path(job, "objective.quadratic.generate.kind", "random");
  set_path(job, "objective.quadratic.generate.examples", 61);
  set_path(job, "objective.quadratic.generate.parameters", 23);
  set_path(job, "objective.quadratic.batch_size", 5);
  set_path(job, "schedule.pipedream.stages", stages);
  set_path(job, "schedule.pipedream.microbatches", microbatches);
  set_path(job, "optimizer.sgd.learning_rate", 0.02);
  return job;
}

TEST(SameBytes, NesterovQuadraticOfSixteenStages) {
  PIPEWRIGHT_NEEDS_SHARED("golden/nesterov_quadratic_s16_X.npy");
  expect_same_bytes(golden_job("nesterov_quadratic_s16", "quadratic", 5, "pipedream",
                               pipedream_parameters(16, 600), 0.00390625));
}

TEST(SameBytes, LogisticOfFourStages) {
  PIPEWRIGHT_NEEDS_SHARED("golden/logistic_tiny_X.npy");
  expect_same_bytes(
      golden_job("logistic_tiny", "logistic", 5, "pipedream", pipedream_parameters(4, 48), 0.2));
}

TEST(SameBytes, OneStage) {
  expect_same_bytes(generated(1, 7));
}
TEST(SameBytes, FewerMicrobatchesThanStages) {
  expect_same_bytes(generated(7, 3));
}
TEST(SameBytes, MoreStagesThanParameters) {
  expect_same_bytes(generated(29, 40));
}
TEST(SameBytes, MomentumAndWeightDecay) {
  expect_same_bytes(generated(
      5, 90, "{optimizer: {sgd: {learning_rate: 0.01, momentum: 0.9, weight_decay: 0.001}}}"));
}
TEST(SameBytes, LatencyAndUnevenCosts) {
  expect_same_bytes(generated(5, 60,
                              "{cost: {forward: [1, 2, 3, 1, 2], backward: 2, update: 1,"
                              " stragglers: [{stage: 2, factor: 1.7}]}, link: {latency: 4}}"));
}
TEST(SameBytes, JitterBandwidthAndAnOverride) {
  expect_same_bytes(generated(
      4, 60,
      "{cost: {forward: 100us, backward: 200us, jitter: {lognormal: {sigma: 0.5}}}, link: {latency:"
      " 300us, bandwidth: 1MB/s, jitter: {exponential: {mean: 100us}}, overrides: [{from: 1, to: 2,"
      " latency: 2ms}]}}"));
}
TEST(SameBytes, DurationsAndObservationsByUpdates) {
  expect_same_bytes(generated(3, 50,
                              "{cost: {forward: 250us, backward: 500us}, link: {latency: 5ms},"
                              " observe: {objective: {every_updates: 7}}}"));
}

TEST(SameBytes, EveryScheduleOfTheRegistry) {
  for (const ScheduleCase& one : all_schedule_cases()) {
    SCOPED_TRACE(name_of(one));
    expect_same_bytes(job_with(one));
  }
}

}  // namespace
}  // namespace pipewright

int main(int argc, char** argv) {
  return pipewright::mpi_test_main(argc, argv);
}
