#include <gmock/gmock.h>

#include <sstream>

#include "core/base/error.hpp"
#include "core/schedule/csv.hpp"
#include "core/schedule/validate.hpp"
#include "core/schedule/versions.hpp"
#include "core/sim/metrics.hpp"
#include "core/sim/rows.hpp"
#include "tests/support/schedules.hpp"

namespace pipewright {
namespace {

using testing::HasSubstr;

Schedule pipedream(int stages, std::int64_t microbatches) {
  return collect(*make_pipedream(stages, microbatches));
}

std::string csv_of(const Schedule& schedule) {
  std::ostringstream out;
  write_csv(out, schedule);
  return out.str();
}

Schedule from_csv(const std::string& text) {
  std::istringstream in(text);
  return read_csv(in, "s.csv");
}

std::string fault_of_csv(const std::string& text) {
  try {
    from_csv(text);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

TEST(ScheduleCsv, FirstLineNamesVersionSizesAndSeed) {
  const std::string text = csv_of(pipedream(2, 1));
  EXPECT_EQ(text,
            "# pipewright schedule version=1 name=pipedream stages=2 microbatches=1 updates=2 "
            "replicas=1 placement=colocated local_steps=0 blocks=all delay_max=0 seed=0\n"
            "0,F,0,0,0,\n0,B,0,0,0,\n0,U,0,0,0,\n1,F,0,0,0,\n1,B,0,0,0,\n1,U,0,0,0,\n");
}

TEST(ScheduleCsv, ReadsWhatItWrites) {
  const Schedule schedule = pipedream(5, 17);
  EXPECT_EQ(from_csv(csv_of(schedule)), schedule);
}

TEST(ScheduleCsv, RowsMayBeMixed) {
  const Schedule schedule = pipedream(3, 9);
  std::ostringstream mixed;
  mixed << csv_header(schedule.header) << "\n";
  for (std::size_t i = 0; i < schedule.rows[0].size(); ++i) {
    for (std::size_t r = 3; r-- > 0;) {
      std::string line;
      append_csv(line, schedule.rows[r][i]);
      mixed << line;
    }
  }
  EXPECT_EQ(from_csv(mixed.str()), schedule);
}

TEST(ScheduleCsv, RefusesWithFileAndLine) {
  const std::string header = csv_header(pipedream(2, 1).header) + "\n";
  EXPECT_THAT(fault_of_csv(""), HasSubstr("s.csv:0: the file is empty"));
  EXPECT_THAT(fault_of_csv("stage,kind\n"), HasSubstr("s.csv:1: expected '# pipewright schedule"));
  EXPECT_THAT(fault_of_csv(header + "0,F,0,0,0,\n0,X,0,0,0,\n"),
              HasSubstr("s.csv:3: column kind: 'X' is none of F, B, U, SYNC"));
  EXPECT_THAT(fault_of_csv(header + "2,F,0,0,0,\n"),
              HasSubstr("s.csv:2: column stage: '2' is not a whole number from 0 to 1"));
  EXPECT_THAT(fault_of_csv(header + "0,F,0,0\n"), HasSubstr("expected the 6 columns"));
  EXPECT_THAT(fault_of_csv(header + "0,F,-1,0,0,\n"), HasSubstr("column microbatch"));
  std::string other = header;
  other.replace(other.find("version=1"), 9, "version=9");
  EXPECT_THAT(fault_of_csv(other), HasSubstr("version '9' is not known"));
}

Action make_action(ActionKind kind, int stage, std::int64_t m) {
  Action action;
  action.kind = kind;
  action.stage = Stage(stage);
  action.microbatch = Microbatch(m);
  action.batch = Batch(m);
  return action;
}

TEST(ValidateSchedule, APipeDreamScheduleHasNoFaults) {
  for (const int stages : {1, 2, 3, 6}) {
    EXPECT_TRUE(validate(pipedream(stages, 10)).empty());
    EXPECT_EQ(check_deadlock(pipedream(stages, 10)), "");
  }
}

TEST(ValidateSchedule, AFaultComesWithItsNeighbourhood) {
  Schedule schedule = pipedream(2, 4);
  // Stage 1 runs F0 B0 U0 F1 B1 U1 ...: its B1 goes away.
  ASSERT_EQ(schedule.rows[1][4].label(), "B1");
  schedule.rows[1].erase(schedule.rows[1].begin() + 4);
  const auto faults = validate(schedule);
  ASSERT_EQ(faults.size(), 2u);
  EXPECT_EQ(faults[0].message, "U1 has no B since the update before it");
  EXPECT_EQ(faults[0].picture, "row 1: F0 B0 U0 F1 >U1< F2 B2 U2 F3 ...");
  EXPECT_EQ(faults[1].message, "row 1 has no B1");
  EXPECT_THROW(require_valid(schedule), ConfigError);
}

TEST(ValidateSchedule, FindsEveryKindOfFault) {
  const auto message_of = [](const std::function<void(Schedule&)>& damage) {
    Schedule schedule = pipedream(2, 3);
    damage(schedule);
    const auto faults = validate(schedule);
    return faults.empty() ? std::string() : faults.front().message;
  };
  EXPECT_THAT(message_of([](Schedule& s) { s.rows[0].push_back(s.rows[0][0]); }),
              HasSubstr("F0 is there twice"));
  EXPECT_THAT(message_of([](Schedule& s) { std::swap(s.rows[1][0], s.rows[1][1]); }),
              HasSubstr("B0 has no F0 before it"));
  EXPECT_THAT(message_of([](Schedule& s) { s.rows[1][0].batch = Batch(2); }),
              HasSubstr("has batch 2, elsewhere batch 0"));
  EXPECT_THAT(message_of([](Schedule& s) { s.rows.pop_back(); }), HasSubstr("has 1 rows"));
  EXPECT_THAT(
      message_of([](Schedule& s) { s.rows[0].push_back(make_action(ActionKind::sync, 0, 1)); }),
      HasSubstr("SYNC1 should be SYNC0"));
  EXPECT_THAT(
      message_of([](Schedule& s) { s.rows[1].push_back(make_action(ActionKind::forward, 1, 7)); }),
      HasSubstr("row 0 has no F7"));
}

TEST(ValidateSchedule, ADeadlockIsToldAsTheCycleOfWaiting) {
  // Stage 0 wants B0 before F1; stage 1 wants F1 before B0.
  Schedule schedule;
  schedule.header = pipedream(2, 2).header;
  schedule.rows.resize(2);
  const auto add = [&](int stage, ActionKind kind, std::int64_t m) {
    schedule.rows[static_cast<std::size_t>(stage)].push_back(make_action(kind, stage, m));
  };
  using enum ActionKind;
  for (const auto& [kind, m] : {std::pair{forward, 0},
                                {backward, 0},
                                {update, 0},
                                {forward, 1},
                                {backward, 1},
                                {update, 1}}) {
    add(0, kind, m);
  }
  for (const auto& [kind, m] : {std::pair{forward, 0},
                                {forward, 1},
                                {backward, 0},
                                {update, 0},
                                {backward, 1},
                                {update, 1}}) {
    add(1, kind, m);
  }
  ASSERT_TRUE(validate(schedule).empty());
  EXPECT_EQ(check_deadlock(schedule),
            "row 0 waits at B0 for B0 of row 1,\n  which waits at F1 for F1 of row 0");
  EXPECT_THROW(simulate(schedule, {}, {}), ConfigError);
}

TEST(Simulate, LatencyDelaysWhatCrossesALinkAndNothingElse) {
  const Timeline timeline =
      simulate(make_pipedream(2, 1, 0, {}, LinkModel(Tick(3))), {}, LinkModel(Tick(3)));
  EXPECT_EQ(rows_of(timeline),
            (std::vector<std::string>{"F0 . . . . . . . . B0", ". . . . F0 B0 . . . ."}));
}

TEST(Simulate, CostsStretchActions) {
  const CostModel cost(Tick(2), Tick(3), Tick(1));
  const Timeline timeline = simulate(make_pipedream(1, 2, 0, cost), cost, {});
  EXPECT_EQ(rows_of(timeline).front(), "F0 F0 B0 B0 B0 . F1 F1 B1 B1 B1 .");
  EXPECT_EQ(makespan_of(timeline), Tick(12));
}

TEST(Simulate, TheGlobalOrderIsByEndThenByRow) {
  const Timeline timeline = simulate(make_pipedream(5, 20), {}, {});
  for (std::size_t i = 1; i < timeline.entries.size(); ++i) {
    const auto& a = timeline.entries[i - 1];
    const auto& b = timeline.entries[i];
    EXPECT_TRUE(a.end < b.end || (a.end == b.end && a.row <= b.row));
  }
}

TEST(Metrics, BubbleIsIdleOverAll) {
  TimelineMetrics metrics(pipedream(4, 8).header);
  for (const auto& entry : simulate(make_pipedream(4, 8), {}, {}).entries) metrics.add(entry);
  // 8 microbatches take 16 of 22 ticks on each stage.
  EXPECT_DOUBLE_EQ(metrics.bubble(), 6.0 / 22);
  EXPECT_DOUBLE_EQ(metrics.idle_over_ideal(), 6.0 / 16);
  EXPECT_EQ(metrics.microbatches(), 8);
  EXPECT_EQ(metrics.versions().updates(), UpdateCount(32));
}

TEST(Versions, ABackwardWithoutItsForwardIsRefused) {
  VersionTracker tracker(pipedream(2, 2).header);
  EXPECT_THROW(tracker.add(Row(1), make_action(ActionKind::backward, 1, 0)), ConfigError);
}

TEST(Histogram, KnowsMaximumMeanAndQuantiles) {
  Histogram histogram;
  EXPECT_EQ(histogram.max(), -1);
  for (const int value : {0, 1, 1, 4}) histogram.add(value);
  EXPECT_EQ(histogram.max(), 4);
  EXPECT_DOUBLE_EQ(histogram.mean(), 1.5);
  EXPECT_EQ(histogram.quantile(0.5), 1);
  EXPECT_EQ(histogram.quantile(1), 4);
}

}  // namespace
}  // namespace pipewright
