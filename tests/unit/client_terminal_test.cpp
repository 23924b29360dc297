// What the terminal client does with keys, axes, smoothing and terminals that can do less.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "client/cli/view/keys.hpp"
#include "client/cli/view/live.hpp"
#include "client/cli/view/plot.hpp"
#include "client/cli/view/screen.hpp"
#include "client/cli/view/smooth.hpp"
#include "client/cli/view/text.hpp"
#include "client/cli/view/top_view.hpp"
#include "client/cli/view/watch_settings.hpp"
#include "client/cli/watchers.hpp"
#include "core/base/error.hpp"

namespace pipewright::cli {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(KeyReader, TakesSequencesHoweverTheyAreCut) {
  KeyReader keys;
  EXPECT_THAT(keys.read("x\x1b[A\x1bOB\x1b[5~q"),
              ElementsAre(U'x', key::up, key::down, key::page_up, U'q'));
  EXPECT_THAT(keys.read("\x1b"), IsEmpty());
  EXPECT_THAT(keys.read("["), IsEmpty());
  EXPECT_THAT(keys.read("C"), ElementsAre(key::right));
}

TEST(KeyReader, PassesOverWhatItDoesNotKnow) {
  KeyReader keys;
  EXPECT_THAT(keys.read("\x1b[1;5Cq"), ElementsAre(key::other, U'q'));
  EXPECT_THAT(keys.read("\x1b[[A"), ElementsAre(key::other));  // F1 of the Linux console
  EXPECT_THAT(keys.read("\x1bq"), ElementsAre(key::escape, U'q'));
  EXPECT_THAT(keys.read("\xC3"), IsEmpty());
  EXPECT_THAT(keys.read("\xA4"), ElementsAre(U'ä'));
  EXPECT_THAT(keys.read("\xFFq"), testing::Contains(U'q'));
  const std::string endless = "\x1b[" + std::string(40, '1');
  EXPECT_THAT(keys.read(endless), Not(IsEmpty())) << "a sequence without an end must not block";
}

TEST(Press, GoesThroughTheAxesAndBack) {
  WatchSettings settings;
  const WatchContent content{.entries = 1, .series = {Series::objective}};
  std::vector<XAxis> seen;
  for (int i = 0; i < 4; ++i) {
    press(settings, U'x', content);
    seen.push_back(settings.x);
  }
  EXPECT_THAT(seen,
              ElementsAre(XAxis::updates, XAxis::microbatches, XAxis::wall_time, XAxis::tick));
  press(settings, U'l', content);
  EXPECT_FALSE(settings.log_y);
  press(settings, U'L', content);
  EXPECT_TRUE(settings.log_x);
  for (const double tail : {0.5, 0.2, 0.05, 1.0}) {
    press(settings, U'z', content);
    EXPECT_EQ(settings.x_tail, tail);
  }
}

TEST(Press, SmoothsBetweenNothingAndTheMost) {
  WatchSettings settings;
  for (int i = 0; i < 30; ++i) press(settings, i % 2 == 0 ? U's' : key::right, {});
  EXPECT_EQ(settings.smoothing, smoothing_max);
  for (int i = 0; i < 30; ++i) press(settings, i % 2 == 0 ? U'S' : key::left, {});
  EXPECT_EQ(settings.smoothing, 0);
}

TEST(Press, ShowsOnlySeriesThatThereAre) {
  WatchSettings settings;
  const WatchContent content{.entries = 1, .series = {Series::objective, Series::gap}};
  press(settings, U'v', content);
  EXPECT_EQ(settings.series, Series::objective);
  press(settings, U'v', content);
  EXPECT_EQ(settings.series, Series::gap);
  press(settings, U'v', content);
  EXPECT_EQ(settings.series, std::nullopt);
  press(settings, U'v', {});
  EXPECT_EQ(settings.series, std::nullopt);
}

TEST(Press, HidesTheEntryUnderTheCursorWhichStaysInTheLegend) {
  WatchSettings settings;
  const WatchContent content{.entries = 3, .series = {}};
  press(settings, key::up, content);
  EXPECT_EQ(settings.cursor, 0U);
  for (int i = 0; i < 9; ++i) press(settings, U'j', content);
  EXPECT_EQ(settings.cursor, 2U);
  press(settings, U' ', content);
  EXPECT_THAT(settings.hidden, ElementsAre(2U));
  press(settings, U' ', content);
  EXPECT_THAT(settings.hidden, IsEmpty());
  press(settings, U' ', {});
  EXPECT_THAT(settings.hidden, IsEmpty());
}

TEST(Press, QuitsByQAndNothingElse) {
  WatchSettings settings;
  for (const Key key : {key::escape, key::other, Key{U'\n'}, Key{3}, Key{U'ä'}}) {
    press(settings, key, {});
  }
  EXPECT_FALSE(settings.quit);
  press(settings, U'q', {});
  EXPECT_TRUE(settings.quit);
}

// The numbers are those of client/web/src/curves/smooth.ts for the same points and width.
TEST(Smoothed, IsTheMeanOfTheWebPage) {
  const std::vector<PlotPoint> points{{0, 1}, {1, 3}, {3, 0}, {4, nan}, {5, 8}, {9, 2}};
  const auto out = smoothed(points, 2);
  // Weights e^(-d / 2): (1 e^-0.5 + 3) / (e^-0.5 + 1), and so on.
  const double a = std::exp(-0.5), b = std::exp(-1.0), c = std::exp(-2.0);
  EXPECT_THAT(out[0].y, DoubleNear(1, 1e-15));
  EXPECT_THAT(out[1].y, DoubleNear((a + 3) / (a + 1), 1e-15));
  EXPECT_THAT(out[2].y, DoubleNear((a + 3) * b / ((a + 1) * b + 1), 1e-15));
  EXPECT_TRUE(std::isnan(out[3].y));
  EXPECT_EQ(out[4].y, 8);
  EXPECT_THAT(out[5].y, DoubleNear((8 * c + 2) / (c + 1), 1e-15));
  EXPECT_EQ(smoothed(points, 0)[1], points[1]);
  EXPECT_THAT(smoothed({}, 2), IsEmpty());
}

TEST(Smoothed, WidthsAreThoseOfTheWebPagesSlider) {
  EXPECT_EQ(smoothing_width(0, 1000), 0);
  EXPECT_THAT(smoothing_width(1, 1000), DoubleNear(0.5, 1e-12));
  EXPECT_THAT(smoothing_width(100, 1000), DoubleNear(200, 1e-9));
}

std::vector<std::string> draw(const std::vector<PlotPoint>& points, PlotSize size,
                              const PlotOptions& options) {
  const PlotCurve curve{points};
  return plot(std::span(&curve, 1), size, options);
}

TEST(PlotAxes, APowerIsAStraightLineOnTwoLogAxes) {
  std::vector<PlotPoint> points;
  for (int i = 0; i <= 100; ++i)
    points.push_back({std::pow(10, i / 50.0), std::pow(10, -i / 50.0)});
  EXPECT_THAT(draw(points, {5, 1}, {.log_y = true, .log_x = true}), ElementsAre("│⠙⠒⠦⣄"));
  // What is not above zero in x is left out.
  points.insert(points.begin(), {0, 1});
  EXPECT_THAT(draw(points, {5, 1}, {.log_y = true, .log_x = true}), ElementsAre("│⠙⠒⠦⣄"));
  // And without anything that is, the axis is linear.
  EXPECT_THAT(draw({{-3, 1}, {0, 0}}, {5, 1}, {.log_y = false, .log_x = true}),
              ElementsAre("│⠉⠒⠤⣀"));
}

TEST(PlotAxes, TheTailHasAnAxisOfItsOwn) {
  const std::vector<PlotPoint> points{{0, 100}, {6, 50}, {7, 1}, {10, 0}};
  EXPECT_THAT(draw(points, {5, 1}, {.log_y = false, .x_tail = 0.3}), ElementsAre("│⠉⠒⠤⣀"));
}

TEST(PlotMarks, EachCurveHasACharacter) {
  const std::vector<PlotPoint> low{{0, 0}, {1, 0}}, high{{0, 1}, {1, 1}};
  const std::vector<PlotCurve> curves{{low}, {high}};
  EXPECT_THAT(plot(curves, {5, 2}, {.log_y = false, .marks = true}), ElementsAre("│++++", "│****"));
}

TEST(PlotMarks, AFaultIsMarkedOncePerGapBehindTheLastFiniteValue) {
  EXPECT_THAT(draw({{0, 1}, {3, 1}, {4, nan}, {5, nan}, {7, 1}}, {9, 1},
                   {.log_y = false, .marks = true, .mark_faults = true}),
              ElementsAre("│****×  *"));
  EXPECT_THAT(draw({{0, nan}, {1, nan}}, {5, 2}, {.log_y = false, .mark_faults = true}),
              ElementsAre("│×", "│"));
}

TEST(Ascii, KeepsEveryWidth) {
  EXPECT_EQ(to_ascii("10 ┤● a…  ██▌░ 日 größe"), "10 +* a~  ###. ?? gr??e");
  EXPECT_EQ(to_ascii("\x1b[32mok\x1b[0m"), "\x1b[32mok\x1b[0m");
}

TEST(Text, WidthsAreThoseOfUnicode) {
  EXPECT_EQ(display_width("e\xCC\x81"), 1);         // a combining accent
  EXPECT_EQ(display_width("\xE2\x80\x8B"), 0);      // zero width space
  EXPECT_EQ(display_width("\xF0\x9F\x9A\x80"), 2);  // a rocket
  EXPECT_EQ(display_width("⣀●─█×"), 5);
}

Job job_called(std::uint32_t id, const std::string& name, std::uint32_t runs = 1) {
  Job job;
  job.id = id;
  job.state = JobState::running;
  job.spec.set("name", name);
  job.started_unix_ms = 1000;
  job.progress = {.ticks_done = 100,
                  .ticks_total = 200,
                  .updates_total = 400,
                  .microbatches_total = 100,
                  .runs = {.total = runs}};
  return job;
}

Event point_at(std::int64_t tick, double value, Series series = Series::objective,
               std::uint32_t run = 0) {
  return {1, 1000 + 500 * tick,
          Point{.series = series,
                .tick = tick,
                .updates = 2 * tick,
                .microbatch = tick / 2,
                .value = value},
          run};
}

TEST(JobView, DrawsASeriesOverEveryAxis) {
  JobView view(job_called(3, "a"));
  view.apply(
      EventList{{point_at(10, 4), point_at(20, 2), point_at(20, 7, Series::last_stage_loss)}, 0},
      0);
  const auto& run = view.curves().at(0);
  EXPECT_THAT(view.line(run, Series::objective, XAxis::tick),
              ElementsAre(PlotPoint{10, 4}, PlotPoint{20, 2}));
  EXPECT_THAT(view.line(run, Series::objective, XAxis::updates),
              ElementsAre(PlotPoint{20, 4}, PlotPoint{40, 2}));
  // 400 updates go with 100 microbatches.
  EXPECT_THAT(view.line(run, Series::objective, XAxis::microbatches),
              ElementsAre(PlotPoint{5, 4}, PlotPoint{10, 2}));
  EXPECT_THAT(view.line(run, Series::last_stage_loss, XAxis::updates),
              ElementsAre(PlotPoint{40, 7}));
  EXPECT_THAT(view.line(run, Series::objective, XAxis::wall_time),
              ElementsAre(PlotPoint{5, 4}, PlotPoint{10, 2}));
  EXPECT_THAT(view.line(run, Series::gap, XAxis::tick), IsEmpty());
}

TEST(JobView, DrawsNothingOverAnAxisWhoseNumbersAreNotKnown) {
  Job many = job_called(3, "a", 4);
  many.progress = {.runs = {.total = 4}};
  JobView view(many);
  view.apply(EventList{{point_at(10, 4)}, 0}, 0);
  const auto line = view.line(view.curves().at(0), Series::objective, XAxis::microbatches);
  EXPECT_TRUE(std::isnan(line.at(0).x));
}

TEST(JobView, LooksAtTheRunsThatWereChosenAlone) {
  JobView view(job_called(3, "a", 40), {2, 5});
  for (std::uint32_t run = 0; run < 40; ++run) {
    view.apply(EventList{{point_at(10, run, Series::objective, run)}, 0}, 0);
  }
  EXPECT_EQ(view.curves().size(), 2U);
  EXPECT_FALSE(view.ended());
  for (const std::uint32_t run : {2U, 5U}) {
    view.apply(EventList{{{1, 0, RunStateChange{{JobState::succeeded, "", 1}}, run}}, 0}, 0);
  }
  EXPECT_TRUE(view.ended());
}

class LiveGolden : public testing::Test {
 protected:
  LiveGolden() : views{JobView(job_called(3, "PipeDream")), JobView(job_called(5, "LocalSGD"))} {
    views[0].apply(EventList{{point_at(0, 100), point_at(100, 1)}, 0}, 0);
    views[1].apply(EventList{{point_at(0, 100), point_at(80, 10)}, 0}, 0);
  }
  std::vector<JobView> views;
};

TEST_F(LiveGolden, TwoJobsInAsciiHaveMarksAndALegend) {
  const auto lines = draw_live(views, {61, 16}, {}, {.colors = false, .utf8 = false}, true);
  EXPECT_THAT(lines, ElementsAre("objective (log) over ticks",                                    //
                                 "100 ++++++++++++",                                              //
                                 "    |      ****++++++++++++",                                   //
                                 "    |             ******** ++++++++++++",                       //
                                 " 10 +                    ********     +++++++++++",             //
                                 "    |                           ********",                      //
                                 "    |                                  ********",               //
                                 "    |                                         ********",        //
                                 "  1 +                                                *******",  //
                                 "    ++--------------------------+--------------------------+",  //
                                 "     0                         50                      ticks",  //
                                 "    RUN  STATE    DONE  VALUE  NAME",                           //
                                 ">*    3  RUNNING  50 %      1  PipeDream",                      //
                                 " +    5  RUNNING  50 %     10  LocalSGD",                       //
                                 "q quit  x axis  l/L log y/x  s/S smooth  v series  z tail"));
}

TEST_F(LiveGolden, WhatIsHiddenStaysInTheLegendOnly) {
  const auto lines =
      draw_live(views, {80, 24}, {.cursor = 1, .hidden = {0, 1}}, {.colors = false}, true);
  const std::string all = testing::PrintToString(lines);
  EXPECT_THAT(all, HasSubstr("PipeDream"));
  EXPECT_THAT(all, HasSubstr("▸○"));
  EXPECT_THAT(all, Not(HasSubstr("┤")));
}

TEST_F(LiveGolden, ALegendThatIsTooLongIsCutAroundItsCursor) {
  std::vector<JobView> many;
  for (std::uint32_t id = 1; id <= 40; ++id) many.emplace_back(job_called(id, "job of many"));
  const std::string all =
      testing::PrintToString(draw_live(many, {80, 24}, {.cursor = 20}, {.colors = false}, true));
  EXPECT_THAT(all, HasSubstr(" of 40)"));
  EXPECT_THAT(all, HasSubstr("▸"));
  EXPECT_THAT(all, HasSubstr("  21  RUNNING"));
  EXPECT_THAT(all, Not(HasSubstr("  40  RUNNING")));
}

TEST_F(LiveGolden, SaysWhenItIsNotLive) {
  views[1].note = "connection lost";
  const std::string all = testing::PrintToString(draw_live(views, {80, 24}, {}, {}, true));
  EXPECT_THAT(all, HasSubstr("not live: job 5: connection lost"));
}

TEST_F(LiveGolden, ManyFormsOfOneFrameFitTheTerminal) {
  for (int columns = 1; columns < 100; columns += 7) {
    for (int rows = 1; rows < 30; rows += 3) {
      for (const XAxis x : {XAxis::tick, XAxis::microbatches, XAxis::wall_time}) {
        const WatchSettings settings{.x = x, .log_x = rows % 2 == 0, .smoothing = 50};
        const auto lines = draw_live(views, {columns, rows}, settings, {}, true);
        ASSERT_LE(static_cast<int>(lines.size()), std::max(1, rows - 1));
        for (const std::string& line : lines) ASSERT_LE(display_width(line), columns - 1) << line;
      }
    }
  }
}

TEST(Repaint, WritesTheRowsThatChangedAndClearsThoseThatAreGone) {
  const std::vector<std::string> before{"one", "two", "three"}, after{"one", "TWO"};
  EXPECT_EQ(repaint(before, after, false), "\x1b[2;1HTWO\x1b[K\x1b[3;1H\x1b[K");
  EXPECT_EQ(repaint(before, before, false), "");
  EXPECT_EQ(repaint(before, after, true), "\x1b[H\x1b[2J\x1b[1;1Hone\x1b[K\x1b[2;1HTWO\x1b[K");
}

TopData top_data() {
  TopData data{.daemon = "http://127.0.0.1:7070", .now_unix_ms = 61'000};
  data.jobs = {job_called(3, "running"), job_called(4, "waiting"), job_called(5, "over")};
  data.jobs[0].user = "zoe";
  data.jobs[0].ranks = {0, 1};
  data.jobs[0].objective_last = 0.5;
  data.jobs[1].state = JobState::queued;
  data.jobs[1].progress.ticks_done = 0;
  data.jobs[1].waits = "waits for 8 ranks";
  data.jobs[2].state = JobState::succeeded;
  data.jobs[2].user = "ann";
  data.jobs[2].objective_last = 0.25;
  data.pools.pools = {{.name = "local",
                       .rank_hosts = {"n1", "n1", "n2"},
                       .rank_jobs = {3, 3, 0},
                       .attached_unix_ms = 1000,
                       .heartbeat_unix_ms = 60'000,
                       .program_version = "",
                       .local = true,
                       .state = "attached"}};
  return data;
}

std::vector<std::string> order_of(const TopSettings& settings) {
  std::vector<std::string> ids;
  for (const std::string& line :
       draw_top(top_data(), {.columns = 0, .rows = 0}, settings, {.colors = false}, false)) {
    if (line.starts_with(" 3  ") || line.starts_with(" 4  ") || line.starts_with(" 5  ")) {
      ids.push_back(line.substr(1, 1));
    }
  }
  return ids;
}

TEST(Top, ShowsWhatRunsBeforeWhatWaitsBeforeWhatIsOver) {
  EXPECT_THAT(order_of({}), ElementsAre("3", "4", "5"));
  EXPECT_THAT(order_of({.reversed = true}), ElementsAre("5", "4", "3"));
  EXPECT_THAT(order_of({.order = TopOrder::id}), ElementsAre("5", "4", "3"));
  EXPECT_THAT(order_of({.order = TopOrder::value}), ElementsAre("5", "3", "4"));
  EXPECT_THAT(order_of({.order = TopOrder::user}), ElementsAre("4", "5", "3"));
  EXPECT_THAT(order_of({.order = TopOrder::progress}), ElementsAre("5", "3", "4"));
  EXPECT_THAT(order_of({.all = false}), ElementsAre("3", "4"));
}

TEST(Top, SaysWhatAPersonWantsToKnow) {
  const std::string all = testing::PrintToString(
      draw_top(top_data(), {.columns = 120, .rows = 20}, {}, {.colors = false}, true));
  EXPECT_THAT(all, HasSubstr("1 running, 1 waiting, 1 ended shown · 2 of 3 ranks busy"));
  EXPECT_THAT(all, HasSubstr("n1 x2, n2 x1"));
  EXPECT_THAT(all, HasSubstr("waiting, waits for 8 ranks"));
  EXPECT_THAT(all, HasSubstr("q quit"));
  // Half of it in the minute since it began.
  EXPECT_THAT(all, HasSubstr("50 %  ████░░░░  1 min 00 s"));
  TopData lost = top_data();
  lost.fault = "no \x1b[2J daemon";
  EXPECT_THAT(testing::PrintToString(draw_top(lost, {80, 20}, {}, {.colors = false}, true)),
              HasSubstr("not live: no ?[2J daemon"));
}

TEST(Top, FitsEveryTerminal) {
  TopData data = top_data();
  for (std::uint32_t id = 10; id < 300; ++id) data.jobs.push_back(job_called(id, "größer"));
  for (int i = 0; i < 40; ++i) data.pools.pools.push_back(data.pools.pools.front());
  for (const TopData& one : {data, TopData{}}) {
    for (int columns = 1; columns < 130; columns += 9) {
      for (int rows = 1; rows < 40; ++rows) {
        const auto lines = draw_top(one, {columns, rows}, {.first = 1000}, {}, rows % 2 == 0);
        ASSERT_LE(static_cast<int>(lines.size()), rows);
        for (const std::string& line : lines) ASSERT_LE(display_width(line), columns) << line;
      }
    }
  }
}

TEST(Top, TheSameKeyAgainReverses) {
  TopSettings settings;
  press(settings, U'v', 9);
  EXPECT_EQ(settings.order, TopOrder::value);
  EXPECT_FALSE(settings.reversed);
  press(settings, U'v', 9);
  EXPECT_TRUE(settings.reversed);
  press(settings, U'i', 9);
  EXPECT_FALSE(settings.reversed);
  press(settings, key::end, 9);
  EXPECT_EQ(settings.first, 8U);
  press(settings, key::down, 9);
  EXPECT_EQ(settings.first, 8U);
  press(settings, key::home, 9);
  press(settings, key::up, 9);
  press(settings, key::page_up, 9);
  EXPECT_EQ(settings.first, 0U);
  press(settings, key::escape, 9);
  EXPECT_FALSE(settings.quit);
  press(settings, U'q', 0);
  EXPECT_TRUE(settings.quit);
}

TEST(Top, TellsNoTimeLeftWhereItIsNotKnown) {
  Job job = job_called(1, "a");
  EXPECT_EQ(seconds_left(job, 61'000), 60);
  EXPECT_EQ(seconds_left(job, 0), std::nullopt) << "a clock that went back";
  job.progress.ticks_done = 0;
  EXPECT_EQ(seconds_left(job, 61'000), std::nullopt);
  job = job_called(1, "a", 4);
  job.progress.runs.succeeded = 1;
  EXPECT_EQ(seconds_left(job, 61'000), 180);
  job.state = JobState::succeeded;
  EXPECT_EQ(seconds_left(job, 61'000), std::nullopt);
}

TEST(ParseWatched, TakesJobsAndRunsOfThem) {
  const auto watched = parse_watched({"4.2", "7", "4.5", "7.1", "4.2"});
  ASSERT_EQ(watched.size(), 2U);
  EXPECT_EQ(watched[0].id, 4U);
  EXPECT_THAT(watched[0].runs, ElementsAre(2U, 5U));
  EXPECT_EQ(watched[1].id, 7U);
  EXPECT_THAT(watched[1].runs, IsEmpty()) << "a job that is given as a whole is watched so";
}

TEST(ParseWatched, RefusesWhatIsNeither) {
  for (const char* text : {"", "x", "0", "-1", "4.", ".2", "4.2.1", "4.x", "99999999999", "4.-1"}) {
    EXPECT_THROW(parse_watched({text}), ConfigError) << text;
  }
}

}  // namespace
}  // namespace pipewright::cli
