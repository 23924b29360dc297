#include <gmock/gmock.h>

#include "core/base/error.hpp"
#include "core/train/block.hpp"
#include "core/train/run_control.hpp"
#include "core/train/setup.hpp"
#include "tests/support/runs.hpp"

namespace pipewright {
namespace {

using testing::HasSubstr;

std::unique_ptr<Optimizer> sgd(double rate) {
  Value parameters = Value::map();
  parameters.set("learning_rate", rate);
  parameters.set("momentum", 0.0);
  parameters.set("weight_decay", 0.0);
  parameters.set("nesterov", false);
  return optimizers().at("sgd").make(parameters);
}

Tensor vector_of(std::initializer_list<double> values) {
  Tensor tensor(DType::float64, {static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.data<double>());
  return tensor;
}

std::vector<double> values_of(const Tensor& tensor) {
  return {tensor.data<double>(), tensor.data<double>() + tensor.elements()};
}

TEST(VersionedBlock, APinnedVersionStaysWhileUpdatesGoOn) {
  VersionedBlock block(vector_of({1, 2}), sgd(1));
  const auto pin = block.pin();
  for (int i = 0; i < 3; ++i) {
    Tensor gradient = vector_of({1, 0});
    block.update(gradient);
  }
  EXPECT_EQ(block.version(), WeightVersion(3));
  EXPECT_EQ(values_of(block.weights()), (std::vector<double>{-2, 2}));
  EXPECT_EQ(values_of(block.weights(pin)), (std::vector<double>{1, 2}));
  EXPECT_EQ(pin.version(), WeightVersion(0));
  block.unpin(pin);
}

TEST(VersionedBlock, HoldsAsManyCopiesAsThereAreVersionsPinned) {
  VersionedBlock block(vector_of({1, 2}), sgd(1));
  const std::int64_t one = block.bytes();
  for (int round = 0; round < 5; ++round) {
    const auto a = block.pin();
    Tensor gradient = vector_of({1, 1});
    block.update(gradient);
    const auto b = block.pin();
    gradient = vector_of({1, 1});
    block.update(gradient);
    EXPECT_EQ(block.bytes(), 3 * one);
    block.unpin(a);
    block.unpin(b);
  }
}

TEST(VersionedBlockDeath, AnUnpinnedVersionIsNotReadAgain) {
  VersionedBlock block(vector_of({1}), sgd(1));
  const auto pin = block.pin();
  block.unpin(pin);
  EXPECT_DEATH(block.weights(pin), "pinned version 0");
}

Value small_job() {
  return small_quadratic_job(40, 30);
}

TEST(Run, ObservesAtAboutTwoHundredTicksByDefaultAndAlwaysAtTheEnd) {
  Value job = small_job();
  set_path(job, "schedule.pipedream.microbatches", 1000);
  Recorder recorder;
  run_job(job, recorder);
  EXPECT_EQ(recorder.curve.front().tick, 0);
  EXPECT_EQ(recorder.curve.back().tick, 2 * (1000 + 3 - 1));
  EXPECT_EQ(recorder.curve.back().updates, 3000);
  EXPECT_GE(recorder.curve.size(), 180u);
  EXPECT_LE(recorder.curve.size(), 240u);
}

TEST(Run, ObservationsByUpdatesAreRowsOfTheCurveByTicks) {
  Value by_ticks = small_job();
  set_path(by_ticks, "observe.objective.every_ticks", 1);
  Value by_updates = small_job();
  set_path(by_updates, "observe.objective.every_updates", 1);
  Recorder ticks, updates;
  run_job(by_ticks, ticks);
  run_job(by_updates, updates);
  ASSERT_EQ(updates.curve.size(), 91u);
  for (std::size_t u = 0; u < updates.curve.size(); ++u) {
    EXPECT_EQ(updates.curve[u].updates, static_cast<std::int64_t>(u));
  }
  // A tick's row has the value of the row of as many updates.
  for (const CurveRow& row : ticks.curve) {
    EXPECT_EQ(updates.curve[static_cast<std::size_t>(row.updates)].value, row.value);
  }
}

TEST(Run, NoObservationsWhenNoneAreWanted) {
  Value job = small_job();
  set_path(job, "observe.objective", Value(Value::Map{{"never", Value::map()}}));
  Recorder recorder;
  run_job(job, recorder);
  EXPECT_TRUE(recorder.curve.empty());
  EXPECT_EQ(recorder.losses.size(), 30u);
}

TEST(Run, TwiceGivesTheSameBytes) {
  Recorder a, b;
  const RunResult first = run_job(small_job(), a);
  const RunResult second = run_job(small_job(), b);
  EXPECT_EQ(a.curve, b.curve);
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.timeline, b.timeline);
  EXPECT_EQ(values_of(first.weights), values_of(second.weights));
  EXPECT_EQ(to_json(first.summary), to_json(second.summary));
}

TEST(Run, TheSummaryCountsTheMessagesOfTheSchedule) {
  Recorder recorder;
  const RunResult result = run_job(small_job(), recorder);
  // Every microbatch crosses S - 1 links twice, 4 doubles each.
  EXPECT_EQ(result.summary.at("messages_sent").as_integer(), 30 * 2 * 2);
  ASSERT_EQ(result.summary.at("links").as_list().size(), 4u);
  for (const Value& link : result.summary.at("links").as_list()) {
    EXPECT_EQ(link.at("bytes").as_integer(), 30 * 4 * 8);
  }
}

TEST(Run, ADivergingRunEndsEarlyAndSaysSo) {
  Value job = small_job();
  set_path(job, "optimizer.sgd.learning_rate", 1e6);
  set_path(job, "schedule.pipedream.microbatches", 100'000);
  Recorder recorder;
  const RunResult result = run_job(job, recorder);
  ASSERT_TRUE(result.divergence.has_value());
  EXPECT_FALSE(std::isfinite(
      std::max(std::abs(recorder.losses.back().value), std::abs(recorder.curve.back().value))));
  EXPECT_LT(recorder.losses.size(), 1000u);
  EXPECT_EQ(result.summary.at("diverged").at("tick").as_integer(), result.divergence->tick.value);
  EXPECT_TRUE(result.weights.empty());
}

std::string fault_of(const Value& job) {
  try {
    Recorder recorder;
    run_job(job, recorder);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(CheckJob, RefusesWhatDoesNotFit) {
  Value job = small_job();
  set_path(job, "cost.forward", "250us");
  EXPECT_THAT(fault_of(job), HasSubstr("times are mixed: 'backward' is 1 ticks and 'forward' is "
                                       "250us"));
  job = small_job();
  set_path(job, "cost.forward", Value(Value::List{1, 2}));
  EXPECT_THAT(fault_of(job), HasSubstr("cost.forward: has 2 times for 3 stages"));
  job = small_job();
  set_path(job, "cost.forward", 0);
  EXPECT_THAT(fault_of(job), HasSubstr("cost.forward: takes no time at stage 0"));
  job = small_job();
  set_path(job, "cost.stragglers",
           Value(Value::List{Value(Value::Map{{"stage", 3}, {"factor", 2}})}));
  EXPECT_THAT(fault_of(job), HasSubstr("cost.stragglers[0].stage: there is no stage 3"));
  job = small_job();
  set_path(job, "schedule.pipedream.stagez", 3);
  EXPECT_THAT(fault_of(job), HasSubstr("did you mean 'stages'?"));
  job = small_job();
  set_path(job, "optimizer.sgd.nesterov", true);
  EXPECT_THAT(fault_of(job), HasSubstr("optimizer.sgd.nesterov: needs a momentum"));
  job = small_job();
  set_path(job, "init.npy", Value(Value::List{"a.npy"}));
  EXPECT_THAT(fault_of(job), HasSubstr("init.npy: names 1 files for 3 stages"));
  job = small_job();
  set_path(job, "schedule.pipedream.microbatches", 10'000'000);
  set_path(job, "cost.forward", "1ms");
  set_path(job, "cost.backward", "1ms");
  set_path(job, "schedule.pipedream.microbatches", 50);
  set_path(job, "observe.objective.every_ticks", 1);
  EXPECT_THAT(fault_of(job), HasSubstr("observe.objective: asks for the objective"));
}

TEST(RunControl, AReportThatIsNotWhatWasPlannedIsRefused) {
  const Value job = check_job(small_job());
  const JobConfig config = JobConfig::from(job);
  DiskFiles files;
  const auto objective = config.load_objective(files);
  RunControl control(config, objective->shape(), {});
  while (!control.plan(10)) {
  }
  const auto window = control.next_window(Row(0), 8);
  ASSERT_TRUE(window.has_value());
  RowReport report;
  report.records.push_back({Tick(1), Tick(2), WeightVersion(0)});  // F0 runs from 0 to 1
  // The observation of tick 0 comes first in the order.
  report.values.push_back({0, 1.0});
  EXPECT_THROW(control.on_report(report), ProtocolError);
}

TEST(RowRunner, AMessageThatTheScheduleHasNoUseForIsRefused) {
  // See RowRunner::check_header: each message here is wrong in one way.
  const JobConfig config = JobConfig::from(check_job(small_job()));
  DiskFiles files;
  const auto objective = config.load_objective(files);
  class Nowhere : public Outbox {
    void send(pipewright::Message) override {}
  } outbox;
  const VirtualClock time;
  RowRunner row(make_row(config, *objective, files, Row(1)), outbox, time);
  const auto message = [] {
    pipewright::Message m;
    m.kind = MessageKind::activation;
    m.from_stage = Stage(0);
    m.to_row = Row(1);
    m.tensor = Tensor::zeros(DType::float64, {4});
    return m;
  };
  row.deliver(message());
  pipewright::Message wrong_row = message();
  wrong_row.to_row = Row(2);
  EXPECT_THROW(row.deliver(std::move(wrong_row)), ProtocolError);
  pipewright::Message wrong_stage = message();
  wrong_stage.from_stage = Stage(2);
  EXPECT_THROW(row.deliver(std::move(wrong_stage)), ProtocolError);
  pipewright::Message wrong_shape = message();
  wrong_shape.tensor = Tensor::zeros(DType::float64, {5});
  EXPECT_THROW(row.deliver(std::move(wrong_shape)), ProtocolError);
  pipewright::Message wrong_type = message();
  wrong_type.tensor = Tensor::zeros(DType::float32, {4});
  EXPECT_THROW(row.deliver(std::move(wrong_type)), ProtocolError);
  pipewright::Message wrong_kind = message();
  wrong_kind.kind = MessageKind::weights;
  EXPECT_THROW(row.deliver(std::move(wrong_kind)), ProtocolError);
}

}  // namespace
}  // namespace pipewright
