// What `watch` shows, without a terminal and without a daemon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "client/cli/command.hpp"
#include "client/cli/line_writer.hpp"
#include "client/cli/view/facts.hpp"
#include "client/cli/view/live.hpp"
#include "client/cli/view/screen.hpp"
#include "client/cli/view/summary.hpp"
#include "client/cli/view/text.hpp"
#include "client/cli/watchers.hpp"

namespace pipewright::cli {
namespace {

using testing::HasSubstr;

Event point(std::uint64_t sequence, std::int64_t tick, double value) {
  return {sequence, 0, Point{.tick = tick, .updates = tick / 2, .value = value}};
}
Event state(std::uint64_t sequence, JobState state, std::uint32_t attempt = 1) {
  return {sequence, 0, StateChange{state, "", attempt}};
}
Job job(JobState state, std::int64_t ticks_done = 0) {
  Job job;
  job.id = 7;
  job.state = state;
  job.spec.set("name", "a name");
  job.progress.ticks_done = ticks_done;
  job.progress.ticks_total = 1000;
  return job;
}

Progress progress(std::int64_t ticks_done) {
  return job(JobState::running, ticks_done).progress;
}
/// Of a job of many runs: a run's point, and its end.
Event point_of_run(std::uint32_t run, double value) {
  Event event = point(1, 10, value);
  event.run = run;
  return event;
}
Event end_of_run(std::uint32_t run, JobState state, std::string message = {}) {
  return {1, 0, RunStateChange{{state, std::move(message), 1}}, run};
}
Job job_of_runs(std::uint32_t total, std::uint32_t succeeded, std::uint32_t failed = 0) {
  Job many = job(JobState::running);
  many.progress = {};
  many.progress.runs = {total, 2, succeeded, failed, 0};
  return many;
}

/// A run of 1000 ticks with a point every `step` ticks.
std::vector<Event> run_of(std::int64_t step) {
  std::vector<Event> events{state(1, JobState::queued, 0), state(2, JobState::running)};
  for (std::int64_t tick = 0; tick <= 1000; tick += step) {
    events.push_back(point(events.size() + 1, tick, 1.0 / static_cast<double>(tick + 1)));
  }
  events.push_back(state(events.size() + 1, JobState::succeeded));
  return events;
}

std::string written(LineWriter& writer, const std::vector<StreamFrame>& frames) {
  std::string out;
  for (const StreamFrame& frame : frames) out += writer.on_frame(frame);
  return out;
}

TEST(LineWriter, WritesStatesAndTwentySteps) {
  LineWriter writer(7, 1000);
  const std::string out = written(writer, {EventList{run_of(1), 0}});
  EXPECT_THAT(out, testing::StartsWith("job 7: QUEUED\njob 7: RUNNING\n"
                                       "job 7: tick 0  updates 0  objective 1\n"
                                       "job 7: tick 50  updates 25  objective 0.0196078\n"));
  EXPECT_THAT(out, testing::EndsWith("job 7: tick 950  updates 475  objective 0.00105152\n"
                                     "job 7: tick 1000  updates 500  objective 0.000999001\n"
                                     "job 7: SUCCEEDED\n"));
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 3 + 21);
}

TEST(LineWriter, WritesTheSameHoweverTheStreamIsCut) {
  LineWriter at_once(7, 1000);
  const std::string expected = written(at_once, {EventList{run_of(3), 0}});
  // The length of the run becomes known in the middle only.
  LineWriter piecewise(7);
  std::vector<StreamFrame> frames;
  for (const Event& event : run_of(3)) {
    frames.emplace_back(EventList{{event}, 0});
    if (event.sequence == 200) frames.emplace_back(LiveFromHere{job(JobState::running)});
    if (event.sequence % 50 == 0) frames.emplace_back(Heartbeat{});
  }
  EXPECT_EQ(written(piecewise, frames), expected);
}

TEST(LineWriter, WritesTheLastPointEvenIfItIsNoStep) {
  LineWriter writer(7, 1000);
  const std::string out =
      written(writer, {EventList{{point(1, 0, 1), point(2, 60, 0.5), point(3, 61, 0.25)}, 0},
                       JobEnded{job(JobState::cancelled)}});
  EXPECT_EQ(out,
            "job 7: tick 0  updates 0  objective 1\n"
            "job 7: tick 60  updates 30  objective 0.5\n"
            "job 7: tick 61  updates 30  objective 0.25\n");
}

TEST(LineWriter, WritesTheLossOnlyOfJobsWithoutAnObjective) {
  const Event loss{1, 0, Point{.series = Series::last_stage_loss, .tick = 8, .value = 4.5}};
  LineWriter without(7, 1000);
  EXPECT_EQ(written(without, {EventList{{loss}, 0}}),
            "job 7: tick 8  microbatch 0  last-stage loss 4.5\n");
  LineWriter with(7, 1000);
  EXPECT_EQ(written(with, {EventList{{point(1, 0, 1), loss}, 0}}),
            "job 7: tick 0  updates 0  objective 1\n");
}

TEST(LineWriter, DisarmsTextFromOthers) {
  LineWriter writer(7);
  const Event log{1, 0, LogLine{Severity::error, "no \x1b[2J file"}};
  EXPECT_EQ(written(writer, {EventList{{log}, 0}}), "job 7: error: no ?[2J file\n");
}

TEST(LineWriter, CountsTheRunsOfAJobOfManyAndNamesThoseThatFail) {
  LineWriter writer(7, 0, 100);
  std::vector<Event> events;
  for (std::uint32_t run = 0; run < 100; ++run) {
    events.push_back(point_of_run(run, 0.5));
    events.push_back(run == 3 ? end_of_run(run, JobState::failed, "bad data")
                              : end_of_run(run, JobState::succeeded));
  }
  const std::string out = written(writer, {EventList{events, 0}});
  EXPECT_THAT(out, testing::StartsWith("job 7: run 3 FAILED: bad data\n"
                                       "job 7: 5 of 100 runs have ended\n"
                                       "job 7: 10 of 100 runs have ended\n"));
  EXPECT_THAT(out, testing::EndsWith("job 7: 100 of 100 runs have ended\n"));
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 21);
}

TEST(LineWriter, OfOneRunOfManyWritesAsIfThereWasNoOther) {
  LineWriter writer = LineWriter::of_run(7, 1);
  const Event own = point_of_run(1, 0.5), other = point_of_run(2, 0.25);
  const std::string out = written(
      writer, {EventList{{own, other, end_of_run(2, JobState::failed, "bad data"),
                          end_of_run(1, JobState::succeeded), state(9, JobState::succeeded)},
                         0}});
  EXPECT_EQ(out, "run 7.1: tick 10  updates 5  objective 0.5\nrun 7.1: SUCCEEDED\n");
}

TEST(JobView, KeepsTheBestAndTheNewestCurvesOfManyRuns) {
  JobView view(job_of_runs(100, 0));
  for (std::uint32_t run = 0; run < 100; ++run) {
    view.apply(EventList{{point_of_run(run, run == 17 ? 0.1 : 1.0 + run)}, 0}, 1);
  }
  EXPECT_EQ(view.best_run(), 17U);
  EXPECT_EQ(view.curves().size(), JobView::curves_max);
  EXPECT_TRUE(view.curves().contains(17));
  EXPECT_TRUE(view.curves().contains(99));
  EXPECT_FALSE(view.curves().contains(50));
}

TEST(JobView, ProgressOfManyRunsIsThatOfTheirEnds) {
  JobView view(job_of_runs(100, 0));
  view.apply(LiveFromHere{job_of_runs(100, 10)}, 10);
  view.apply(job_of_runs(100, 28, 2).progress, 12);
  EXPECT_EQ(view.fraction_done(), 0.3);
  EXPECT_EQ(view.steps_per_second(), 10);
  EXPECT_EQ(view.seconds_left(), 7);
  view.apply(EventList{{point_of_run(4, 0.25)}, 0}, 12);
  const auto lines = draw_live(std::span(&view, 1), {80, 24}, {}, {.colors = false}, false);
  const std::string all = testing::PrintToString(lines);
  EXPECT_THAT(all, HasSubstr("30 of 100 runs, 2 failed"));
  EXPECT_THAT(all, HasSubstr("best: run 4, objective 0.25"));
}

TEST(JobView, KnowsRateAndTimeLeftFromLiveProgress) {
  JobView view(job(JobState::running));
  view.apply(LiveFromHere{job(JobState::running, 100)}, 10);
  EXPECT_EQ(view.steps_per_second(), std::nullopt);
  view.apply(progress(300), 12);
  EXPECT_EQ(view.steps_per_second(), 100);
  EXPECT_EQ(view.seconds_left(), 7);
  EXPECT_EQ(view.fraction_done(), 0.3);
}

TEST(JobView, ForgetsTheRateWhenTheRunIsStartedAgain) {
  JobView view(job(JobState::running));
  view.apply(LiveFromHere{job(JobState::running, 500)}, 1);
  view.apply(progress(600), 2);
  view.apply(progress(10), 3);
  EXPECT_EQ(view.steps_per_second(), std::nullopt);
}

TEST(Curve, KeepsItsEndsInBoundedMemory) {
  Curve curve;
  for (int i = 0; i < 1000000; ++i) {
    curve.add({.tick = static_cast<double>(i), .value = 1e6 - i});
  }
  EXPECT_LE(curve.points().size(), 8193U);
  EXPECT_EQ(curve.points().front(), (CurvePoint{.tick = 0, .value = 1e6}));
  EXPECT_EQ(curve.points().back(), (CurvePoint{.tick = 999999, .value = 1}));
  EXPECT_EQ(curve.best(), (CurvePoint{.tick = 999999, .value = 1}));
}

TEST(Live, FitsEveryTerminal) {
  std::vector<JobView> views(2, JobView(job(JobState::running)));
  for (JobView& view : views) view.apply(EventList{run_of(5), 0}, 0);
  views[0].note = "connection lost: a long reason that does not fit into a narrow terminal";
  for (int columns = 1; columns < 140; columns += 3) {
    for (int rows = 1; rows < 40; ++rows) {
      for (const std::size_t jobs : {1U, 2U}) {
        const auto lines =
            draw_live(std::span(views).first(jobs), {columns, rows}, {}, {}, rows % 2 == 0);
        ASSERT_LE(static_cast<int>(lines.size()), std::max(1, rows - 1));
        for (const std::string& line : lines) ASSERT_LE(display_width(line), columns - 1) << line;
      }
    }
  }
}

TEST(Live, SaysWhatAPersonWantsToKnow) {
  JobView view(job(JobState::running));
  view.apply(EventList{{state(1, JobState::running), point(2, 0, 2), point(3, 500, 0.5)}, 0}, 0);
  view.apply(LiveFromHere{job(JobState::running, 400)}, 0);
  view.apply(progress(500), 1);
  const auto lines = draw_live(std::span(&view, 1), {100, 24}, {}, {.colors = false}, false);
  EXPECT_EQ(lines.front(), "job 7  a name  RUNNING");
  EXPECT_THAT(lines[lines.size() - 2], HasSubstr("50 %  tick 500 of 1000  100 ticks/s  5 s left"));
  EXPECT_EQ(lines.back(), "objective 0.5 at tick 500   best 0.5   250 updates");
}

TEST(Live, BarGrowsByEighths) {
  EXPECT_EQ(progress_bar(0, 4), "░░░░");
  EXPECT_EQ(progress_bar(0.5, 4), "██░░");
  EXPECT_EQ(progress_bar(0.53125, 4), "██▏░");
  EXPECT_EQ(progress_bar(1, 4), "████");
}

TEST(Screen, RewritesOnlyTheLinesThatChanged) {
  const std::vector<std::string> before{"one", "two", "three"}, after{"one", "TWO"};
  EXPECT_EQ(redraw({}, before, 80), "\rone\x1b[K\r\ntwo\x1b[K\r\nthree\x1b[K\r\n\x1b[J");
  EXPECT_EQ(redraw(before, after, 80), "\r\x1b[3A\r\nTWO\x1b[K\r\n\x1b[J");
}

TEST(Screen, FindsItsFirstLineAgainAfterTheTerminalHasWrappedTheOldOnes) {
  const std::vector<std::string> before{"12345678", "1234"}, after{"abc"};
  EXPECT_EQ(redraw(before, after, 5), "\r\x1b[3A\x1b[Jabc\x1b[K\r\n\x1b[J");
}

TEST(Summary, SaysOutcomeAndCosts) {
  Job ended = job(JobState::succeeded);
  ended.objective_last = 0.25;
  ended.objective_best = 0.125;
  ended.started_unix_ms = 1000;
  ended.ended_unix_ms = 3500;
  ended.summary_json = R"json({"objective_first": 2, "makespan_ticks": 22, "bubble": 0.25,
    "idle_over_ideal": 0.333, "updates": 32, "microbatches": 8, "wall_seconds": 2.25,
    "delay_updates": {"start_up": {"max": 5, "mean": 2.5}, "steady": {"max": 3, "mean": 3}},
    "per_stage": [{"stage": 0, "staleness_versions": {"start_up": {"max": 3, "mean": 1},
      "steady": {"max": 3, "mean": 3}}, "stash_microbatches_max": 4, "stash_versions_max": 4,
      "stash_bytes_max": 2048}],
    "bytes_sent": 3072, "links": [{"from": 0, "to": 1, "bytes": 2048},
      {"from": 1, "to": 0, "bytes": 1024}],
    "known": [{"what": "makespan, ticks", "formula": "2 (N + S - 1)", "metric": "makespan_ticks",
      "expected": 22, "measured": 23, "holds": false}],
    "target": {"value": 0.5, "tick": 12, "updates": 9, "microbatches": 3, "bytes_sent": 512},
    "theory": {"smoothness": 2, "optimum": 0.125, "gradient_norm_max": 3, "delay_max": 5,
      "gradient_norm_sq": 0.5, "gradient_norm_sq_mean": 0.75, "bound": 40, "gap": 0.125}})json";
  const std::string text = format_summary(ended);
  EXPECT_THAT(text, HasSubstr("SUCCEEDED"));
  EXPECT_THAT(text, HasSubstr("0.25, best 0.125, at the start 2\n"));
  EXPECT_THAT(text, HasSubstr("22 ticks, 32 updates, 8 microbatches\n"));
  EXPECT_THAT(text, HasSubstr("25 % of the ticks idle, 0.333 idle/ideal\n"));
  EXPECT_THAT(text, HasSubstr("start-up max 5, mean 2.5; steady max 3, mean 3\n"));
  EXPECT_THAT(text, HasSubstr("2.2 s\n"));
  EXPECT_THAT(text, HasSubstr("2 KiB"));
  EXPECT_THAT(text, HasSubstr("3 KiB over 2 links, 1 KiB to 2 KiB each"));
  EXPECT_THAT(text, HasSubstr("below 0.5 at tick 12: 9 updates, 3 microbatches, 512 B sent"));
  EXPECT_THAT(text, HasSubstr("||grad f||^2 0.5 at the end, mean 0.75"));
  EXPECT_THAT(text, HasSubstr("40 on that mean (L 2, G 3, delta 5)"));
  EXPECT_THAT(text, HasSubstr("f - f* 0.125, f* 0.125"));
  EXPECT_THAT(text, HasSubstr("2 (N + S - 1)        22        23  NO"));
}

TEST(Facts, HistogramsAreOneBarPerValueAndStagesAddUp) {
  const Value summary = parse_json(R"({"delay_updates": {"start_up": {"max": 3, "bin_width": 1,
      "histogram": [[0, 1], [1, 4], [3, 8]]}, "steady": {"max": 199, "bin_width": 2,
      "histogram": [[0, 5], [198, 5]]}},
    "per_stage": [{"staleness_versions": {"steady": {"max": 1, "bin_width": 1,
      "histogram": [[1, 2]]}}}, {"staleness_versions": {"steady": {"max": 0, "bin_width": 1,
      "histogram": [[0, 4]]}}}]})",
                                   "test");
  EXPECT_EQ(histogram_lines(summary),
            "delay, start-up      0 ▁▄ █ 3\n"
            "delay, steady        0 █" +
                std::string(23, ' ') +
                "█ 199\n"
                "staleness, steady    0 █▄ 1\n");
}

TEST(Summary, DoesWithoutWhatIsNotThere) {
  Job failed = job(JobState::failed);
  failed.message = "no such file";
  EXPECT_EQ(format_summary(failed), "job 7  FAILED: no such file\n");
}

TEST(Outcome, AFailureOutweighsACancellation) {
  const JobState good = JobState::succeeded, bad = JobState::failed,
                 cancelled = JobState::cancelled;
  EXPECT_EQ(outcome_of({good, good}), exit_ok);
  EXPECT_EQ(outcome_of({good, cancelled}), exit_cancelled);
  EXPECT_EQ(outcome_of({bad, cancelled}), exit_failure);
  EXPECT_EQ(outcome_of({cancelled, bad}), exit_failure);
}

}  // namespace
}  // namespace pipewright::cli
