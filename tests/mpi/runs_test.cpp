// One job, any number of ranks, the same bytes (DESIGN.md section 3): each rank count is compared
// with the run in one process.
#include <fstream>
#include <map>

#include "core/schedule/csv.hpp"
#include "proto/codec/job_file.hpp"
#include "tests/mpi/pool_runs.hpp"
#include "tests/support/language_model.hpp"
#include "tests/support/schedule_cases.hpp"

namespace pipewright {
namespace {

/// Bytes that each row has sent to each neighbour are those of the schedule's sends: every F but
/// the last stage's, and every B above the lowest stage that the microbatch comes back to.
void expect_counted_sends(const Value& summary, const std::string& folder,
                          std::int64_t message_bytes) {
  std::ifstream in(folder + "/schedule.csv");
  const Schedule schedule = read_csv(in, "schedule.csv");
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> expected, counted;
  std::int64_t messages = 0;
  for (std::size_t r = 0; r < schedule.rows.size(); ++r) {
    const auto row = static_cast<std::int64_t>(r);
    for (const Action& action : schedule.rows[r]) {
      const bool sends_on =
          action.kind == ActionKind::forward && action.stage.value + 1 < schedule.header.stages;
      const bool sends_back =
          action.kind == ActionKind::backward && action.stage > action.backward_to;
      if (!sends_on && !sends_back) continue;
      expected[{row, sends_on ? row + 1 : row - 1}] += message_bytes;
      ++messages;
    }
  }
  for (const Value& link : summary.at("links").as_list()) {
    counted[{link.at("from").as_integer(), link.at("to").as_integer()}] =
        link.at("bytes").as_integer();
  }
  EXPECT_EQ(counted, expected);
  EXPECT_EQ(summary.at("messages_sent").as_integer(), messages);
}

/// Runs `job` on all ranks and, on rank 0, compares its files with those of a run in one process.
void expect_same_bytes(const Value& job, std::int64_t message_bytes = 5 * sizeof(double)) {
  const TemporaryFolder folder;
  const auto result = run_on_ranks(job, folder / "ranks");
  if (!result) return;
  ASSERT_EQ(result->outcome, RunOutcome::succeeded) << result->message;
  run_here(job, folder / "alone");
  std::vector<std::string> names{"weights.npy", "objective.csv", "timeline.csv", "schedule.csv",
                                 "last_stage_loss.csv"};
  if (JobConfig::from(check_job(job)).theory) names.push_back("theory.csv");
  if (find_path(job, "objective.transformer.validation_fraction") != nullptr) {
    names.push_back("validation.csv");
  }
  for (const std::string& name : names) {
    const std::string ranks = bytes_of((folder / "ranks") + "/" + name);
    EXPECT_FALSE(ranks.empty()) << name;
    EXPECT_TRUE(ranks == bytes_of((folder / "alone") + "/" + name)) << name << " differs";
  }
  expect_counted_sends(result->summary, folder / "ranks", message_bytes);
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

TEST(SameBytes, LanguageModelOfFourStages) {
  PIPEWRIGHT_NEEDS_SHARED("golden/lm_tiny.json");
  static constexpr std::int64_t message_bytes = 4 * 16 * 32 * sizeof(float);
  expect_same_bytes(lm_tiny_job("pipedream"), message_bytes);
  for (const int local_steps : {1, 4}) {
    expect_same_bytes(lm_tiny_job("local_sgd", 4, local_steps), message_bytes);
  }
}

// Observed so often that the parts of several evaluations are under way at once.
TEST(SameBytes, LanguageModelWithValidationUnderOtherSchedules) {
  PIPEWRIGHT_NEEDS_SHARED("golden/lm_tiny.json");
  static constexpr std::int64_t message_bytes = 4 * 16 * 32 * sizeof(float);
  const auto with_validation = [](Value job) {
    set_path(job, "objective.transformer.validation_fraction", 0.2);
    set_path(job, "observe.objective.every_ticks", 5);
    return job;
  };
  Value spread = with_validation(lm_tiny_job("local_sgd", 3, 2));
  set_path(spread, "schedule.local_sgd.placement", "spread");
  expect_same_bytes(spread, message_bytes);
  Value rpd = with_validation(lm_tiny_job("pipedream"));
  Value draws = Value::map();
  draws.set("stages", 4);
  draws.set("updates", 60);
  draws.set("delay_max", 6);
  rpd.set("schedule", one_of("rpd", std::move(draws)));
  set_path(rpd, "objective.transformer.recompute", true);
  expect_same_bytes(rpd, message_bytes);
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

TEST(SameBytes, WithTheory) {
  const Value pipedream =
      generated(5, 60, "{observe: {objective: {every_ticks: 3}, theory: true}, target: 2}");
  expect_same_bytes(pipedream);
  for (const char* placement : {"colocated", "spread"}) {
    Value job = job_with({"local_sgd", parameters_from("{stages: 3, replicas: 4, local_steps: 2,"
                                                       " microbatches: 30}")});
    set_path(job, "schedule.local_sgd.placement", placement);
    set_path(job, "observe.theory", true);
    expect_same_bytes(job);
  }
  Value rpd = job_with(
      {"rpd", parameters_from("{stages: 4, updates: 90, delay_max: 14, in_flight_max: 6}")});
  set_path(rpd, "observe", parameters_from("{objective: {every_updates: 4}, theory: true}"));
  expect_same_bytes(rpd);
}

const char* const adamw =
    "{adamw: {learning_rate: 0.05, weight_decay: 0.02, clip_norm: 0.8, learning_rate_schedule:"
    " {warm_up_cosine: {warm_up: 3, updates: 20, final: 0.1}}}}";

std::vector<ScheduleCase> cases_for_adamw() {
  return {
      {"pipedream", parameters_from("{stages: 4, microbatches: 60}")},
      {"rpd", parameters_from("{stages: 4, updates: 90, delay_max: 14, in_flight_max: 6}")},
      {"local_sgd", parameters_from("{stages: 3, replicas: 4, local_steps: 2, microbatches: 30}")},
      {"local_sgd", parameters_from("{stages: 2, replicas: 3, local_steps: 2, microbatches: 30,"
                                    " placement: spread, outer: {sgd: {learning_rate: 0.7,"
                                    " momentum: 0.5}}}")}};
}

TEST(SameBytes, QuadraticWithAdamWClippedAndWithASchedule) {
  for (const ScheduleCase& one : cases_for_adamw()) {
    SCOPED_TRACE(name_of(one));
    Value job = job_with(one);
    job.set("optimizer", parameters_from(adamw));
    expect_same_bytes(job);
  }
}

TEST(SameBytes, LogisticWithAdamWClippedAndWithASchedule) {
  PIPEWRIGHT_NEEDS_SHARED("golden/logistic_tiny_X.npy");
  for (const ScheduleCase& one : cases_for_adamw()) {
    SCOPED_TRACE(name_of(one));
    Value job = golden_job("logistic_tiny", "logistic", 5, one.kind, one.parameters, 0.2);
    job.set("optimizer", parameters_from(adamw));
    expect_same_bytes(job);
  }
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
