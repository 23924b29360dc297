#include <gmock/gmock.h>

#include "client/cli/view/runs_view.hpp"

namespace pipewright::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

Value map_of(Value::Map entries) {
  return entries;
}

/// A line of a table: a run, or a point when `mean` is a map.
Value line_of(std::int64_t number, double rate, Value objective) {
  const Value swept = map_of({{"optimizer.sgd.learning_rate", rate}});
  return map_of({{"run", number},
                 {"point", number},
                 {"runs", 2},
                 {"swept", swept},
                 {"outcome", "succeeded"},
                 {"objective_last", objective},
                 {"tail_mean", objective},
                 {"stable", true}});
}

Value table_of(Value::List runs, Value::List groups) {
  const Value swept = map_of({{"optimizer.sgd.learning_rate", 0.25}});
  const Value best = map_of({{"point", 1}, {"swept", swept}, {"value", 0.5}});
  return map_of({{"runs", std::move(runs)},
                 {"groups", std::move(groups)},
                 {"best", map_of({{"by_final", best}, {"by_tail_mean_of_stable", Value()}})},
                 {"warnings", Value::List{"widen the grid"}}});
}

TEST(RunsView, HasALinePerRunAndMarksTheBest) {
  const Value::List lines{line_of(0, 0.5, 1.25), line_of(1, 0.25, 0.5), line_of(2, 0.125, Value())};
  EXPECT_EQ(format_run_table(table_of(lines, lines)),
            "RUN  learning_rate  OUTCOME    OBJECTIVE  TAIL MEAN  STABLE\n"
            "  0            0.5  succeeded       1.25       1.25  yes\n"
            "  1           0.25  succeeded        0.5        0.5  yes     best\n"
            "  2          0.125  succeeded          -          -  yes\n"
            "\n"
            "best at the end           0.5 with learning_rate = 0.25\n"
            "best tail mean, if stable none\n"
            "warning: widen the grid\n");
}

TEST(RunsView, HasALinePerPointWhenThereAreRepeats) {
  const Value mean = map_of({{"mean", 0.5}, {"low", 0.375}, {"high", 0.625}});
  const Value run = line_of(0, 0.5, 0.5);
  const std::string text = format_run_table(
      table_of({run, run, run, run}, {line_of(0, 0.5, Value()), line_of(1, 0.25, mean)}));
  EXPECT_THAT(text, HasSubstr("POINT  learning_rate  RUNS   OBJECTIVE   TAIL MEAN  STABLE\n"));
  EXPECT_THAT(text,
              HasSubstr("    1           0.25     2  0.5 ± 0.12  0.5 ± 0.12  yes     best\n"));
  EXPECT_THAT(text, HasSubstr("± 95 % confidence"));
}

TEST(RunsView, OfManyRunsTheLowestAreShown) {
  Value::List lines;
  for (int i = 0; i < 100; ++i) lines.push_back(line_of(i, 1, i < 97 ? Value(100 - i) : Value()));
  const std::string text = format_run_table(table_of(lines, lines), 0, 3);
  EXPECT_THAT(text, HasSubstr("the 3 of 100 runs with the lowest objective"));
  EXPECT_THAT(text, HasSubstr("\n 94  "));
  EXPECT_THAT(text, HasSubstr("\n 96  "));
  EXPECT_THAT(text, Not(HasSubstr("\n 93  ")));
  EXPECT_THAT(text, Not(HasSubstr("\n 97  ")));
}

TEST(RunsView, KeysAreNamedByTheirLastPartWhereThatIsClear) {
  EXPECT_EQ(format_swept(map_of({{"a.x", 1}, {"b.x", "t"}, {"b.y", 0.5}})),
            "a.x = 1, b.x = t, y = 0.5");
}

}  // namespace
}  // namespace pipewright::cli
