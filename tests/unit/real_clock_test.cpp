// The real clock without a machine's: time is what the test says it is.
#include <gmock/gmock.h>

#include "core/base/error.hpp"
#include "core/train/run_control.hpp"
#include "core/train/setup.hpp"
#include "tests/support/runs.hpp"
#include "worker/runtime/common_clock.hpp"

namespace pipewright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The other clock is 1000 ahead; ways of 30 and 10 ns, then 2 and 2.
TEST(ClockOffset, IsThatOfTheShortestRoundTrip) {
  ClockOffset offset;
  offset.add({100, 1130, 1140, 150}, false);
  EXPECT_EQ(offset.offset_ns(), 1010) << "((1130 - 100) + (1140 - 150)) / 2";
  EXPECT_EQ(offset.error_ns(), 20);
  offset.add({200, 1202, 1210, 212}, false);
  EXPECT_EQ(offset.offset_ns(), 1000);
  EXPECT_EQ(offset.error_ns(), 2);
  offset.add({300, 1390, 1391, 401}, false);
  EXPECT_EQ(offset.offset_ns(), 1000) << "a slower exchange knows less";
}

TEST(ClockOffset, OneClockHasNoOffset) {
  ClockOffset offset;
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(offset.is_settled());
    offset.add({100, 130, 140, 150}, true);
  }
  EXPECT_TRUE(offset.is_settled());
  EXPECT_EQ(offset.offset_ns(), 0);
  EXPECT_EQ(offset.error_ns(), 0);
}

// A name alone does not make two clocks one: containers may shift theirs.
TEST(ClockOffset, ANameIsNotBelievedAgainstTheEvidence) {
  ClockOffset offset;
  offset.add({100, 90, 95, 150}, true);
  EXPECT_EQ(offset.offset_ns(), -32) << "((90 - 100) + (95 - 150)) / 2";
  EXPECT_FALSE(offset.is_settled());
}

Action action(ActionKind kind, std::int64_t m) {
  Action made;
  made.kind = kind;
  made.microbatch = Microbatch(m);
  return made;
}

ActionRecord record(std::int64_t start, std::int64_t end,
                    std::int64_t position = ActionRecord::next_in_plan) {
  return {Tick(start), Tick(end), WeightVersion(0), position};
}

std::vector<std::string> all_of(MeasuredOrder& order) {
  std::vector<std::string> labels;
  while (const auto done = order.next()) {
    labels.push_back(std::to_string(done->entry.row.value) + done->entry.action.label());
  }
  return labels;
}

TEST(MeasuredOrder, IsByTheEndThenByRow) {
  MeasuredOrder order(2);
  for (int m = 0; m < 2; ++m) {
    order.expect(Row(0), action(ActionKind::forward, m));
    order.expect(Row(1), action(ActionKind::forward, m));
  }
  order.add(Row(1), record(0, 5));
  order.add(Row(1), record(5, 9));
  EXPECT_THAT(all_of(order), ElementsAre()) << "row 0 may still come before";
  order.add(Row(0), record(0, 5));
  EXPECT_THAT(all_of(order), ElementsAre("0F0")) << "and once more, in the same tick";
  order.add(Row(0), record(6, 8));
  EXPECT_THAT(all_of(order), ElementsAre("1F0", "0F1", "1F1"));
  EXPECT_EQ(order.held(), 0u);
}

TEST(MeasuredOrder, ARowWithNothingToDoIsNotWaitedFor) {
  MeasuredOrder order(2);
  order.expect(Row(1), action(ActionKind::forward, 0));
  order.add(Row(1), record(0, 5));
  EXPECT_THAT(all_of(order), ElementsAre("1F0"));
  EXPECT_TRUE(order.has_row_with_less_than(1));
}

TEST(MeasuredOrder, ARowMayTakeAnotherOrder) {
  MeasuredOrder order(1);
  for (int m = 0; m < 3; ++m) order.expect(Row(0), action(ActionKind::forward, m));
  order.add(Row(0), record(0, 1, 1));
  order.add(Row(0), record(1, 2, 0));
  order.add(Row(0), record(2, 3, 2));
  EXPECT_THAT(all_of(order), ElementsAre("0F1", "0F0", "0F2"));
}

TEST(MeasuredOrder, WhatWasNotToBeDoneIsRefused) {
  MeasuredOrder order(1);
  EXPECT_THROW(order.add(Row(0), record(0, 1)), ProtocolError);
  order.expect(Row(0), action(ActionKind::forward, 0));
  order.expect(Row(0), action(ActionKind::forward, 1));
  order.add(Row(0), record(4, 5, 1));
  EXPECT_THROW(order.add(Row(0), record(5, 6, 1)), ProtocolError) << "done before";
  EXPECT_THROW(order.add(Row(0), record(3, 4, 0)), ProtocolError) << "time goes forward";
}

Value two_stages() {
  Value job = Value::map();
  set_path(job, "objective.quadratic.generate.kind", "random");
  set_path(job, "objective.quadratic.generate.examples", 20);
  set_path(job, "objective.quadratic.generate.parameters", 6);
  set_path(job, "objective.quadratic.batch_size", 4);
  job.set("schedule", one_of("pipedream", pipedream_parameters(2, 5)));
  set_path(job, "optimizer.sgd.learning_rate", 0.01);
  set_path(job, "link.latency", "5us");
  set_path(job, "cost.forward", "1us");
  job.set("clock", "real");
  return job;
}

class Sent : public Outbox {
 public:
  void send(pipewright::Message message) override { messages.push_back(std::move(message)); }
  std::vector<pipewright::Message> messages;
};

/// One row, a clock that the test sets, and what the row has sent.
class RowOnARealClock : public testing::Test {
 protected:
  void SetUp() override { set_up(Row(0)); }

  void set_up(Row row) {
    const JobConfig config = JobConfig::from(check_job(two_stages()));
    DiskFiles files;
    objective_ = config.load_objective(files);
    row_ = std::make_unique<RowRunner>(make_row(config, *objective_, files, row), sent_, time_);
    Window window;
    window.row = row;
    for (int m = 0; m < 2; ++m) {
      Instruction forward;
      forward.microbatch = Microbatch(m);
      window.instructions.push_back(forward);
    }
    row_->append(window);
  }

  std::int64_t now_ = 0;
  RealClock time_{[this] { return Tick(now_); }};
  Sent sent_;
  std::unique_ptr<Objective> objective_;
  std::unique_ptr<RowRunner> row_;
};

TEST_F(RowOnARealClock, ComputingIsStretchedToItsCost) {
  now_ = 100;
  EXPECT_EQ(row_->step(), RowRunner::Step::ran);
  EXPECT_TRUE(sent_.messages.empty()) << "its end has not come";
  EXPECT_FALSE(row_->has_report());
  EXPECT_EQ(row_->wakes_at(), Tick(1100));
  now_ = 1099;
  EXPECT_EQ(row_->step(), RowRunner::Step::blocked);
  now_ = 1130;
  EXPECT_EQ(row_->step(), RowRunner::Step::ran) << "the next forward";
  ASSERT_EQ(sent_.messages.size(), 1u);
  EXPECT_EQ(sent_.messages[0].sent, Tick(1100));
  EXPECT_EQ(sent_.messages[0].arrival, Tick(6100));
  const RowReport report = row_->take_report();
  ASSERT_EQ(report.records.size(), 1u);
  EXPECT_EQ(report.records[0].start, Tick(100));
  EXPECT_EQ(report.records[0].end, Tick(1100));
}

TEST_F(RowOnARealClock, WhatTakesLongerThanItsCostEndsWhenItEnds) {
  std::int64_t looks = 0;
  const RealClock slow([&] { return Tick(looks++ * 700); });
  const Tick start = slow.begin(Tick(0));
  EXPECT_EQ(slow.end(start, Tick(100)), start + Tick(700));
  EXPECT_EQ(slow.end(start, Tick(5000)), start + Tick(5000));
}

TEST_F(RowOnARealClock, NothingBeginsBeforeTheCommonStart) {
  now_ = -10;
  EXPECT_EQ(row_->step(), RowRunner::Step::blocked);
  EXPECT_EQ(row_->wakes_at(), Tick(0));
}

TEST_F(RowOnARealClock, AMessageIsInvisibleUntilItsLatencyHasPassed) {
  set_up(Row(1));
  EXPECT_EQ(row_->step(), RowRunner::Step::blocked);
  EXPECT_EQ(row_->wakes_at(), std::nullopt) << "nothing is on its way";
  pipewright::Message input;
  input.from_stage = Stage(0);
  input.to_row = Row(1);
  input.sent = Tick(1000);
  input.arrival = Tick(6000);
  input.tensor = Tensor::zeros(DType::float64, {4});
  row_->deliver(std::move(input));
  now_ = 5999;
  EXPECT_EQ(row_->step(), RowRunner::Step::blocked);
  EXPECT_EQ(row_->wakes_at(), Tick(6000));
  now_ = 6000;
  EXPECT_EQ(row_->step(), RowRunner::Step::ran);
}

std::string fault_of(Value job) {
  try {
    check_job(job);
  } catch (const ParamError& error) {
    return error.what();
  }
  return "";
}

TEST(RealClockParameters, TicksAreRefused) {
  Value job = two_stages();
  EXPECT_EQ(fault_of(job), "");
  set_path(job, "cost.backward", 1);
  EXPECT_THAT(fault_of(job), HasSubstr("clock: real time has no ticks: 'backward' is 1 ticks"));
  job = two_stages();
  set_path(job, "link.latency", 5);
  EXPECT_THAT(fault_of(job), HasSubstr("clock: real time has no ticks: 'latency' is 5 ticks"));
  job = two_stages();
  job.set("clock", "wall");
  EXPECT_THAT(fault_of(job), HasSubstr("virtual"));
}

TEST(RealClockParameters, WithoutACostComputingTakesTheTimeThatItTakes) {
  const CostModel cost = JobConfig::from(check_job(two_stages())).cost;
  EXPECT_EQ(cost.of(ActionKind::forward, Stage(0), Microbatch(0)), Tick(1000));
  EXPECT_EQ(cost.of(ActionKind::backward, Stage(0), Microbatch(0)), Tick(1));
}

TEST(RealClockParameters, OneProcessIsRefusedWithTheWayToRunIt) {
  Recorder recorder;
  try {
    run_job(two_stages(), recorder);
    FAIL() << "it ran";
  } catch (const ParamError& error) {
    EXPECT_THAT(error.what(), HasSubstr("pipewright submit"));
    EXPECT_THAT(error.what(), HasSubstr("mpirun -n RANKS pipewright-worker --run"));
  }
}

}  // namespace
}  // namespace pipewright
