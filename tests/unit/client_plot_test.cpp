// The plot and the tables, character by character.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "client/cli/view/plot.hpp"
#include "client/cli/view/table.hpp"
#include "client/cli/view/text.hpp"

namespace pipewright::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> draw(const std::vector<PlotPoint>& points, PlotSize size,
                              const PlotOptions& options) {
  const PlotCurve curve{points};
  return plot(std::span(&curve, 1), size, options);
}

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();
const PlotOptions linear{.log_y = false};
const PlotOptions logarithmic{.log_y = true};

TEST(Plot, JoinsTwoPointsByALineOfDots) {
  EXPECT_THAT(draw({{0, 0}, {3, 1}}, {5, 1}, linear), ElementsAre("│⣀⠤⠒⠉"));
  EXPECT_THAT(draw({{0, 1}, {7, 0}}, {5, 1}, linear), ElementsAre("│⠉⠒⠤⣀"));
}

TEST(Plot, LabelsItsAxesWithRoundNumbers) {
  EXPECT_THAT(draw({{0, 0}, {10, 10}}, {18, 7}, {.log_y = false, .x_label = "ticks"}),
              ElementsAre("10 ┤           ⢀⠔⠊",    //
                          "   │        ⢀⠤⠊⠁",      //
                          " 5 ┤     ⢀⡠⠊⠁",         //
                          "   │  ⢀⡠⠒⠁",            //
                          " 0 ┤⡠⠔⠁",               //
                          "   └┬────────────┬",    //
                          "    0        ticks"));  //
}

TEST(Plot, DrawsAnExponentialAsAStraightLineOnALogAxisWithDecades) {
  EXPECT_THAT(draw({{0, 1000}, {30, 1}}, {20, 8}, {.log_y = true, .x_label = "ticks"}),
              ElementsAre("    │⠑⠤⡀",                //
                          "    │  ⠈⠢⢄",              //
                          "100 ┤     ⠑⠤⡀",           //
                          "    │       ⠈⠒⢄",         //
                          "    │          ⠑⠢⡀",      //
                          "  1 ┤            ⠈⠒⢄",    //
                          "    └┬────────┬─────",    //
                          "     0         ticks"));  //
}

TEST(Plot, ShowsOnePointAsADot) {
  EXPECT_THAT(draw({{5, 3}}, {14, 5}, linear),
              ElementsAre("  │", "3 ┤⠂", "  │", "  └┬─────────┬", "   5         6"));
}

TEST(Plot, RunsAConstantCurveThroughTheMiddle) {
  EXPECT_THAT(draw({{0, 2}, {4, 2}}, {16, 6}, linear),
              ElementsAre("  │", "  │", "2 ┤⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉", "  │", "  └┬────────────", "   0"));
  EXPECT_THAT(draw({{0, 0}, {4, 0}}, {5, 2}, linear), ElementsAre("│⣀⣀⣀⣀", "│"));
}

TEST(Plot, IsInterruptedByValuesThatALogAxisCannotShow) {
  EXPECT_THAT(draw({{0, 1}, {1, 0}, {2, -3}, {3, nan}, {4, 1}, {5, infinity}, {6, 10}}, {5, 1},
                   logarithmic),
              ElementsAre("│⡀ ⢀⠈"));
}

TEST(Plot, IsLinearWhenNoValueIsAboveZero) {
  const std::vector<PlotPoint> points{{0, -1}, {3, -2}};
  EXPECT_THAT(draw(points, {5, 1}, logarithmic), ElementsAre("│⠉⠒⠤⣀"));
}

TEST(Plot, IsAnEmptyFrameWithoutPoints) {
  EXPECT_THAT(draw({}, {5, 2}, logarithmic), ElementsAre("│", "│"));
  EXPECT_THAT(draw({{0, nan}, {1, nan}}, {5, 2}, logarithmic), ElementsAre("│", "│"));
}

TEST(Plot, DrawsNothingWhereThereIsNoRoom) {
  EXPECT_THAT(draw({{0, 1}, {1, 2}}, {3, 10}, linear), IsEmpty());
  EXPECT_THAT(draw({{0, 1}, {1, 2}}, {10, 0}, linear), IsEmpty());
}

TEST(Plot, NeverLeavesItsSizeAndAlwaysFillsItsRows) {
  std::vector<PlotPoint> points;
  for (int i = 0; i < 500; ++i) points.push_back({i * 1e7, 3 * std::exp(-i / 40.0) + 1e-9});
  for (int columns = 4; columns < 130; ++columns) {
    for (int rows = 1; rows < 30; ++rows) {
      const auto lines = draw(points, {columns, rows}, {.log_y = true, .x_label = "ticks"});
      ASSERT_EQ(lines.size(), static_cast<std::size_t>(rows));
      for (const std::string& line : lines) ASSERT_LE(display_width(line), columns) << line;
    }
  }
}

TEST(Plot, GivesEachCurveItsColour) {
  const std::vector<PlotPoint> low{{0, 0}, {1, 0}}, high{{0, 1}, {1, 1}};
  const std::vector<PlotCurve> curves{{low}, {high}};
  EXPECT_THAT(
      plot(curves, {5, 2}, {.log_y = false, .colors = true}),
      ElementsAre("│" + curve_color(1) + "⠉⠉⠉⠉\x1b[0m", "│" + curve_color(0) + "⣀⣀⣀⣀\x1b[0m"));
}

TEST(AxisTicks, AreDecadesOnALogAxis) {
  using testing::DoubleEq;
  EXPECT_THAT(axis_ticks(1e-3, 1, true, 10),
              ElementsAre(DoubleEq(1e-3), DoubleEq(1e-2), DoubleEq(0.1), DoubleEq(1)));
  EXPECT_THAT(
      axis_ticks(1e-12, 1, true, 5),
      ElementsAre(DoubleEq(1e-12), DoubleEq(1e-9), DoubleEq(1e-6), DoubleEq(1e-3), DoubleEq(1)));
}

TEST(AxisTicks, AreFinerWithinADecade) {
  using testing::DoubleEq;
  EXPECT_THAT(axis_ticks(0.4, 0.69, true, 5),
              ElementsAre(DoubleEq(0.4), DoubleEq(0.5), DoubleEq(0.6)));
  EXPECT_THAT(axis_ticks(0.6931, 0.6939, true, 5).size(), testing::Ge(3U));
}

TEST(AxisTicks, AreOneTwoFiveTimesAPowerOfTenOnALinearAxis) {
  EXPECT_THAT(axis_ticks(0, 10, false, 6), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(axis_ticks(-1, 1, false, 4), ElementsAre(-1, 0, 1));
}

TEST(Table, AlignsItsColumnsAndLeavesNoSpacesBehind) {
  EXPECT_EQ(format_table({{"ID", Align::right}, {"STATE"}, {"NAME"}},
                         {{"7", "RUNNING", "größer"}, {"12", "QUEUED", ""}}),
            "ID  STATE    NAME\n"
            " 7  RUNNING  größer\n"
            "12  QUEUED\n");
}

TEST(Table, ClipsTheColumnThatShrinks) {
  EXPECT_EQ(format_table({{"ID"}, {.title = "NAME", .shrinks = true}},
                         {{"1", "a name that is too long"}}, 16),
            "ID  NAME\n"
            "1   a name that…\n");
}

TEST(Text, CountsColumnsNotBytes) {
  EXPECT_EQ(display_width("größer"), 6);
  EXPECT_EQ(display_width("\x1b[36mab\x1b[0m"), 2);
  EXPECT_EQ(display_width("日本"), 4);
  EXPECT_EQ(clip("日本語", 4), "日…");
  EXPECT_EQ(clip("abc", 3), "abc");
  EXPECT_EQ(clip("\x1b[36mabcdef\x1b[0m", 3), "\x1b[36mab…\x1b[0m");
}

TEST(Text, DisarmsWhatCouldSteerATerminal) {
  EXPECT_EQ(printable("a\x1b]0;x\x07z\n"), "a?]0;x?z?");
  EXPECT_EQ(printable("gr\xC3\xBC\xC3"), "grü?");
  EXPECT_EQ(printable("a\xE2\x80\xAE"
                      "b"),
            "a?b");
}

TEST(Text, WritesNumbersShortly) {
  EXPECT_EQ(format_short(0.69314718), "0.6931");
  EXPECT_EQ(format_short(1.23456e-7), "1.235e-7");
  EXPECT_EQ(format_short(12340), "12340");
  EXPECT_EQ(format_short(nan), "nan");
  EXPECT_EQ(format_short(-infinity), "-inf");
  EXPECT_EQ(format_si(999), "999");
  EXPECT_EQ(format_si(12500), "12.5k");
  EXPECT_EQ(format_si(3e6), "3M");
}

TEST(Text, WritesDurationsInTheUnitThatFits) {
  EXPECT_EQ(format_seconds(0.3), "300 ms");
  EXPECT_EQ(format_seconds(2.34), "2.3 s");
  EXPECT_EQ(format_seconds(59.7), "1 min 00 s");
  EXPECT_EQ(format_seconds(185), "3 min 05 s");
  EXPECT_EQ(format_seconds(7620), "2 h 07 min");
  EXPECT_EQ(format_seconds(400000), "4 d 15 h");
  EXPECT_EQ(format_seconds(infinity), "?");
}

}  // namespace
}  // namespace pipewright::cli
