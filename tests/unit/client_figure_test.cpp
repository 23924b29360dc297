// Figures: scripts for gnuplot, tables of numbers, and Gantt charts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "client/cli/figure/figure.hpp"
#include "client/cli/figure/gantt.hpp"
#include "client/cli/figure/number_table.hpp"
#include "core/base/error.hpp"

namespace pipewright::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::vector<double> values(const FigureCurve& curve) {
  std::vector<double> y;
  for (const PlotPoint& point : curve.points) y.push_back(point.y);
  return y;
}

FigureCurve curve(const std::vector<double>& y) {
  FigureCurve made;
  for (std::size_t i = 0; i < y.size(); ++i) made.points.push_back({static_cast<double>(i), y[i]});
  return made;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

TEST(Figure, FormatFollowsTheExtension) {
  EXPECT_EQ(figure_format_of("a.svg"), FigureFormat::svg);
  EXPECT_EQ(figure_format_of("a.b/c.png"), FigureFormat::png);
  EXPECT_THROW(figure_format_of("a.pdf"), ConfigError);
  EXPECT_THROW(figure_format_of("svg"), ConfigError);
}

TEST(Figure, LogAxisSuitsPositiveValuesOfMoreThanTwoDecades) {
  EXPECT_TRUE(suits_log_y({curve({1, 0.5}), curve({0.009})}));
  EXPECT_FALSE(suits_log_y({curve({1, 0.01})}));
  EXPECT_FALSE(suits_log_y({curve({1, 1e-9, 0})}));
  EXPECT_TRUE(suits_log_y({curve({1, nan, 1e-9})}));
  EXPECT_FALSE(suits_log_y({curve({nan})}));
}

TEST(Figure, SmoothingIsTheMeanOfTheLastPointsAndBeginsAnewAfterAnInterruption) {
  FigureCurve one = curve({2, 4, 6, 8, nan, 10, 20});
  smooth(one, 3);
  const auto y = values(one);
  EXPECT_THAT(std::vector(y.begin(), y.begin() + 4), ElementsAre(2, 3, 4, 6));
  EXPECT_TRUE(std::isnan(y[4]));
  EXPECT_THAT(std::vector(y.begin() + 5, y.end()), ElementsAre(10, 15));
  FigureCurve band = curve({0, 2});
  band.band = {{-2, 2}, {0, 4}};
  smooth(band, 2);
  EXPECT_EQ(band.band[1].low, -1);
  EXPECT_EQ(band.band[1].high, 3);
}

TEST(Figure, ThinningKeepsEndsPeaksAndInterruptions) {
  std::vector<double> y(100'000);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::sin(static_cast<double>(i) / 3000);
  y[45'678] = 70;
  y[45'679] = -70;
  y[80'000] = nan;
  FigureCurve one = curve(y);
  thin(one, 2000, false);
  EXPECT_LE(one.points.size(), 2001u);
  EXPECT_GE(one.points.size(), 1000u);
  EXPECT_EQ(one.points.front().x, 0);
  EXPECT_EQ(one.points.back().x, 99'999);
  std::size_t interruptions = 0;
  double low = 0, high = 0, before = -1;
  for (const PlotPoint& point : one.points) {
    EXPECT_GT(point.x, before);
    before = point.x;
    interruptions += std::isnan(point.y) ? 1 : 0;
    low = std::fmin(low, point.y);
    high = std::fmax(high, point.y);
  }
  EXPECT_EQ(interruptions, 1u);
  EXPECT_EQ(low, -70);
  EXPECT_EQ(high, 70);
  FigureCurve few = curve({1, 2, 3});
  thin(few, 3, false);
  EXPECT_THAT(values(few), ElementsAre(1, 2, 3));
}

TEST(Figure, OnALogAxisTheBeginningIsThinnedLeast) {
  FigureCurve one = curve(std::vector<double>(10'000, 1.0));
  thin(one, 400, true);
  std::size_t early = 0;
  for (const PlotPoint& point : one.points) early += point.x < 100 ? 1 : 0;
  EXPECT_GT(early, 50u);
}

TEST(Figure, TextOfOthersStaysText) {
  EXPECT_EQ(gnuplot_quoted("it's `date` \\ \"x\" @m"), "'it''s `date` \\ \"x\" @m'");
  EXPECT_EQ(gnuplot_quoted("two\nlines\x1b"), "'two?lines?'");
  Figure figure{.curves = {curve({1, 2})}, .title = "'; system('true') #"};
  figure.curves[0].label = "a' . system('true') . '";
  const std::string script = gnuplot_script(figure, FigureFormat::svg);
  EXPECT_THAT(script, HasSubstr("set title '''; system(''true'') #' noenhanced\n"));
  EXPECT_THAT(script, HasSubstr("title 'a'' . system(''true'') . '''\n"));
}

TEST(Figure, ScriptHoldsDataAndLeavesOutWhatALogAxisCannotShow) {
  Figure figure{.curves = {curve({1, 1000, 0, nan, -3, 1e-3})}, .log_y = true};
  const std::string script = gnuplot_script(figure, FigureFormat::png);
  EXPECT_THAT(script, HasSubstr("<< END_OF_CURVE\n0 1\n1 1000\n\n5 0.001\nEND_OF_CURVE\n"));
  EXPECT_THAT(script, HasSubstr("set logscale y"));
  EXPECT_THAT(script, HasSubstr("set format y '10^{%T}'"));
  EXPECT_THAT(script, HasSubstr("pngcairo"));
  figure.curves = {curve({0, -1})};
  EXPECT_THROW(gnuplot_script(figure, FigureFormat::svg), ConfigError);
  figure.curves = {};
  EXPECT_THROW(gnuplot_script(figure, FigureFormat::svg), ConfigError);
}

TEST(Figure, BandsLieBelowLines) {
  Figure figure{.curves = {curve({1, 2}), curve({2, 3})}};
  figure.curves[1].band = {{1, 3}, {2, 4}};
  const std::string script = gnuplot_script(figure, FigureFormat::svg);
  EXPECT_THAT(script, HasSubstr("0 2 1 3\n1 3 2 4\n"));
  EXPECT_LT(script.find("with filledcurves"), script.find("with linespoints"));
}

TEST(Figure, ManyLabelsStandOutside) {
  Figure figure;
  for (int i = 0; i < 7; ++i) {
    figure.curves.push_back(curve({1, 2}));
    figure.curves.back().label = "x";
  }
  EXPECT_THAT(gnuplot_script(figure, FigureFormat::svg), HasSubstr("set key outside"));
  figure.curves.pop_back();
  // Rising curves leave two corners empty.
  EXPECT_THAT(gnuplot_script(figure, FigureFormat::svg), HasSubstr("set key inside"));
}

TEST(Figure, OfMoreLabelsThanThereIsRoomForAPartIsNamed) {
  Figure figure{.curves = {}, .height_px = 240};
  for (int i = 0; i < 35; ++i) {
    figure.curves.push_back(curve({1, 2}));
    figure.curves.back().label = "run " + std::to_string(i);
  }
  const std::string script = gnuplot_script(figure, FigureFormat::svg);
  for (const char* named : {"'run 0'", "'run 4'", "'run 32'"})
    EXPECT_THAT(script, HasSubstr(named));
  EXPECT_THAT(script, Not(HasSubstr("'run 1'")));
}

class NumberTable : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name =
        (std::filesystem::temp_directory_path() / "pipewright-table-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& text) const {
    std::ofstream(folder_ / "t.csv") << text;
    return (folder_ / "t.csv").string();
  }

  std::filesystem::path folder_;
};

TEST_F(NumberTable, ReadsTheColumnsThatAreAskedFor) {
  const std::string path = write("# a remark\na, b,c\r\n1,2,text\n3,nan,\n\n-5,-inf,x\n");
  EXPECT_THAT(column_names(path), ElementsAre("a", "b", "c"));
  const std::vector<std::string> names{"b", "a"};
  const auto columns = read_columns(path, names);
  EXPECT_THAT(columns[1], ElementsAre(1, 3, -5));
  EXPECT_EQ(columns[0][0], 2);
  EXPECT_TRUE(std::isnan(columns[0][1]));
  EXPECT_EQ(columns[0][2], -std::numeric_limits<double>::infinity());
}

TEST_F(NumberTable, FaultsNameFileAndLine) {
  const auto fault = [&](const std::string& text, const std::string& column) -> std::string {
    const std::string path = write(text);
    const std::vector<std::string> names{column};
    try {
      read_columns(path, names);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_THAT(fault("a,b\n1,2\n3\n", "a"), HasSubstr("t.csv:3: 1 cells, expected 2"));
  EXPECT_THAT(fault("a,b\n1,x\n", "b"), HasSubstr("t.csv:2: 'x' in column b is no number"));
  EXPECT_THAT(fault("value,b\n", "vlaue"), HasSubstr("did you mean 'value'"));
  EXPECT_THAT(fault("", "a"), HasSubstr("it is empty"));
  EXPECT_THROW(column_names((folder_ / "none").string()), DataError);
}

TimelineEntry entry(ActionKind kind, int stage, int microbatch, int start, int end) {
  TimelineEntry made;
  made.row = Row(stage);
  made.action.kind = kind;
  made.action.stage = Stage(stage);
  made.action.microbatch = Microbatch(microbatch);
  made.start = Tick(start);
  made.end = Tick(end);
  return made;
}

Timeline one_microbatch() {
  Timeline timeline;
  timeline.header.stages = 2;
  timeline.entries = {
      entry(ActionKind::forward, 0, 7, 0, 1),  entry(ActionKind::forward, 1, 7, 3, 4),
      entry(ActionKind::backward, 1, 7, 4, 5), entry(ActionKind::update, 1, 7, 5, 5),
      entry(ActionKind::backward, 0, 7, 7, 8), entry(ActionKind::update, 0, 7, 8, 8)};
  return timeline;
}

TEST(Gantt, EveryActionIsABoxWithItsNameAndTimes) {
  const std::string svg = gantt_svg(one_microbatch(), {.from = Tick(0), .to = Tick(8)});
  EXPECT_EQ(count(svg, "<title>"), 6u);
  EXPECT_THAT(svg, HasSubstr("<title>F7: 3 to 4</title>"));
  EXPECT_THAT(svg, HasSubstr("<title>U7: 8 to 8</title>"));
  EXPECT_THAT(svg, HasSubstr(">stage 1</text>"));
  EXPECT_THAT(svg, HasSubstr("time (ticks)"));
  EXPECT_THAT(svg, Not(HasSubstr("sync")));
  EXPECT_EQ(count(svg, ">7</text>"), 4u) << "the number stands in each F and B";
  EXPECT_EQ(count(svg, "stroke-width"), 0u);
}

TEST(Gantt, MessagesAreLinesFromEndToStart) {
  GanttOptions options{.from = Tick(0), .to = Tick(8), .messages = true};
  EXPECT_EQ(count(gantt_svg(one_microbatch(), options), "stroke-width"), 2u);
}

TEST(Gantt, DurationsHaveAUnit) {
  Timeline timeline;
  timeline.entries = {entry(ActionKind::forward, 0, 0, 0, 20'000'000)};
  const std::string svg =
      gantt_svg(timeline, {.from = Tick(0), .to = Tick(20'000'000), .in_durations = true});
  EXPECT_THAT(svg, HasSubstr("time (ms)"));
  EXPECT_THAT(svg, HasSubstr("<title>F0: 0ns to 20ms</title>"));
  EXPECT_THAT(svg, HasSubstr(">20</text>"));
}

TEST(Gantt, TooManyBoxesAreRefusedWithAWayOut) {
  Timeline timeline;
  for (int i = 0; i <= static_cast<int>(gantt_boxes_max); ++i) {
    timeline.entries.push_back(entry(ActionKind::forward, 0, i, i, i + 1));
  }
  try {
    gantt_svg(timeline, {.from = Tick(0), .to = Tick(10'000)});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--from TICK and --to TICK"));
  }
  timeline.entries.pop_back();
  EXPECT_THAT(gantt_svg(timeline, {.from = Tick(0), .to = Tick(5000)}), HasSubstr("</svg>"));
}

}  // namespace
}  // namespace pipewright::cli
