// The known formulas beside what the engine measures, over grids: wherever a schedule declares a
// formula it must hold (core/theory/formulas.hpp gives the sources).
#include <gmock/gmock.h>

#include <map>

#include "core/sim/metrics.hpp"
#include "core/theory/formulas.hpp"
#include "tests/support/schedule_cases.hpp"
#include "tests/support/schedules.hpp"

namespace pipewright {
namespace {

/// Formulas of one schedule beside what its timeline gives.
Value known_of(const std::string& kind, const Value& given, const CostModel& cost = {},
               const LinkModel& link = {}) {
  const ScheduleKind& entry = ScheduleRegistry::instance().at(kind);
  const Value parameters =
      check_params(ParamSpec::group_of(kind, "", entry.parameters), given, kind);
  Simulator simulator(entry.make(parameters, {cost, link, 0, 0}), cost, link);
  TimelineMetrics metrics(simulator.header());
  while (const auto item = simulator.next()) metrics.add(*item);
  if (!entry.known) return Value::list();
  return compare_known(entry.known(parameters, {cost, link, 0, 0}), metrics.to_value());
}

class Grid {
 public:
  void check(const std::string& kind, const Value& given, const CostModel& cost = {},
             const LinkModel& link = {}) {
    const Value known = known_of(kind, given, cost, link);
    for (const Value& one : known.as_list()) {
      EXPECT_TRUE(one.at("holds").as_bool()) << kind << " " << to_json(given, -1) << ", latency "
                                             << link.latency() << ": " << to_json(one, -1);
      ++held_[one.at("formula").as_text()];
    }
  }
  int held(const std::string& formula) const {
    const auto at = held_.find(formula);
    return at == held_.end() ? 0 : at->second;
  }

 private:
  std::map<std::string, int> held_;
};

TEST(KnownFormulas, OfGreedyPipeDreamHoldOverStagesMicrobatchesAndCaps) {
  Grid grid;
  for (const int stages : {1, 2, 3, 4, 5, 8, 13, 16}) {
    for (const int n : {1, 2, 3, stages, 2 * stages - 1, 2 * stages, 2 * stages + 1, 3 * stages,
                        5 * stages, 10 * stages, 10 * stages + 3, 17 * stages}) {
      for (const int cap : {1, 2, stages, stages + 1, 2 * stages, 3 * stages}) {
        Value parameters = Value::map();
        parameters.set("stages", stages);
        parameters.set("microbatches", n);
        parameters.set("in_flight_max", cap);
        grid.check("pipedream", parameters);
      }
    }
  }
  EXPECT_GE(grid.held("2 (N + S - 1)"), 200);
  EXPECT_GE(grid.held("min(cap, 2 (S - s) - 1)"), 200);
  EXPECT_GE(grid.held("floor(S^2 - S/2)"), 20);
  EXPECT_GE(grid.held("floor(5 S^2 / 4 - S)"), 20);
  EXPECT_GE(grid.held("S - 1 - s"), 20);
}

TEST(KnownFormulas, OfLocalSgdHoldOverStagesReplicasAndSteps) {
  Grid grid;
  for (const int stages : {1, 2, 3, 5, 8}) {
    for (const int replicas : {1, 2, 3, 5, 8, 11}) {
      for (const int steps : {1, 2, 3, 7}) {
        for (const int extra : {0, 1}) {
          for (const char* placement : {"colocated", "spread"}) {
            Value parameters = Value::map();
            parameters.set("stages", stages);
            parameters.set("replicas", replicas);
            parameters.set("local_steps", steps);
            parameters.set("microbatches", 3 * replicas * steps + extra);
            parameters.set("placement", placement);
            grid.check("local_sgd", parameters);
          }
        }
      }
    }
  }
  EXPECT_EQ(grid.held("2 [max(R, S) (H - 1) + R + S - 1]"), 240);
  EXPECT_EQ(grid.held("2 S H"), 240);
}

TEST(KnownFormulas, OfFlushSchedulesHoldOverStagesMicrobatchesAndGroups) {
  Grid grid;
  for (const char* kind : {"fill_drain", "one_f_one_b"}) {
    for (const int stages : {1, 2, 3, 5, 9}) {
      for (const int n : {1, 2, 3, 7, 20, 41}) {
        for (const int group : {1, 2, 5, 41}) {
          Value parameters = Value::map();
          parameters.set("stages", stages);
          parameters.set("microbatches", n);
          parameters.set("accumulate", group);
          grid.check(kind, parameters);
        }
      }
    }
  }
  EXPECT_GE(grid.held("(S - 1) / (N + S - 1)"), 50);
  EXPECT_GE(grid.held("2 (n + S - 1), added up over the groups of n"), 50);
}

TEST(KnownFormulas, OfStrictOrderHoldOverLatenciesCostsAndWarmUps) {
  Grid grid;
  for (const int stages : {1, 2, 3, 4, 7}) {
    for (const int c : {0, 1, 2, 3, 4, 8}) {
      for (const auto& [forward, backward] : {std::pair{1, 1}, {1, 2}, {2, 2}, {3, 5}}) {
        for (const double factor : {1.0, 1.5, 2.0, 3.0, 1 + 2.0 * c / (forward + backward)}) {
          for (const int more : {0, 1, 5}) {
            Value parameters = Value::map();
            parameters.set("stages", stages);
            parameters.set("microbatches", 100 * stages + more);
            parameters.set("order", "strict");
            parameters.set("warm_up", factor);
            grid.check("pipedream", parameters, CostModel(Tick(forward), Tick(backward)),
                       LinkModel(Tick(c)));
          }
        }
      }
    }
  }
  EXPECT_GE(grid.held("(tF + tB) + 2 (S - 1) c / S"), 100);
  EXPECT_GE(grid.held("tF + tB"), 100);
  EXPECT_GE(grid.held("W_s"), 100);
}

TEST(KnownFormulas, OfEveryScheduleHoldAtOddAndDegenerateSizes) {
  Grid grid;
  for (const ScheduleCase& one : all_schedule_cases()) grid.check(one.kind, one.parameters);
  EXPECT_GE(grid.held("at most delay_max"), 3);
  EXPECT_GE(grid.held("2 N S"), 2);
}

TEST(KnownFormulas, AreLeftOutWhereTheirConditionsAreNotMet) {
  const Value given = parameters_from("{stages: 4, microbatches: 80}");
  EXPECT_FALSE(known_of("pipedream", given).as_list().empty());
  EXPECT_TRUE(known_of("pipedream", given, CostModel(Tick(1), Tick(2))).as_list().empty());
  EXPECT_TRUE(known_of("pipedream", given, {}, LinkModel(Tick(1))).as_list().empty());
  const Value ring =
      parameters_from("{stages: 4, replicas: 2, local_steps: 3, microbatches: 24, sync: ring}");
  EXPECT_TRUE(known_of("local_sgd", ring).as_list().empty());
}

TEST(KnownFormulas, SayWhenAMeasuredValueIsAnother) {
  Value metrics = Value::map();
  metrics.set("makespan_ticks", 9);
  metrics.set("per_stage", parameters_from("{all: [{peak: 3}, {peak: 1}]}").at("all"));
  const Value known = compare_known(
      {KnownResult::of("makespan", "f", "makespan_ticks", 8),
       KnownResult::of("makespan", "f", "makespan_ticks", 10, KnownResult::Relation::at_most),
       {"peak", "g", "per_stage.peak", {3, 1}},
       {"peak", "g", "per_stage.peak", {3, 2}},
       KnownResult::of("not measured", "h", "no_such", 1)},
      metrics);
  ASSERT_EQ(known.as_list().size(), 4u);
  EXPECT_FALSE(known.as_list()[0].at("holds").as_bool());
  EXPECT_TRUE(known.as_list()[1].at("holds").as_bool());
  EXPECT_TRUE(known.as_list()[2].at("holds").as_bool());
  EXPECT_FALSE(known.as_list()[3].at("holds").as_bool());
}

TEST(KnownFormulas, OnHandNumbers) {
  EXPECT_EQ(theory::pipedream_delay_max_steady(8), 60);
  EXPECT_EQ(theory::pipedream_delay_max_steady(3), 7);  // 9 - 1.5, rounded down
  EXPECT_EQ(theory::pipedream_delay_max(8), 72);
  EXPECT_EQ(theory::pipedream_delay_max(5), 26);  // 31.25 - 5, rounded down
  EXPECT_EQ(theory::greedy_stash_max(4, 0, 4), 4);
  EXPECT_EQ(theory::greedy_stash_max(4, 3, 4), 1);
  EXPECT_EQ(theory::local_sgd_round(16, 16, 5), 2 * (16 * 4 + 31));
  EXPECT_EQ(theory::pipeline_makespan(600, 16), 1230);
  EXPECT_DOUBLE_EQ(theory::pipeline_bubble(9, 4), 0.25);
  EXPECT_DOUBLE_EQ(theory::strict_period(4, 2, 1), 3.5);
  EXPECT_EQ(theory::hiding_warm_up(4, 0, 2, 1), 6);
  EXPECT_EQ(theory::hiding_warm_up(4, 2, 3, 1), std::nullopt);
}

TEST(Histograms, OfADelayAreBoundedAndCompleteCounts) {
  Value parameters = Value::map();
  parameters.set("stages", 20);
  parameters.set("microbatches", 400);
  Simulator simulator(make_schedule("pipedream", parameters), {}, {});
  TimelineMetrics metrics(simulator.header());
  while (const auto entry = simulator.next()) metrics.add(*entry);
  const Value phase = *find_path(metrics.to_value(), "delay_updates.steady");
  EXPECT_EQ(phase.at("max").as_integer(), 390);
  EXPECT_EQ(phase.at("bin_width").as_integer(), 5);  // 390 / 2 would be 196 bins
  std::int64_t sum = 0;
  std::int64_t before = -1;
  for (const Value& bin : phase.at("histogram").as_list()) {
    EXPECT_EQ(bin.as_list()[0].as_integer() % 5, 0);
    EXPECT_GT(bin.as_list()[0].as_integer(), before);
    before = bin.as_list()[0].as_integer();
    sum += bin.as_list()[1].as_integer();
  }
  EXPECT_LE(phase.at("histogram").as_list().size(), 100u);
  EXPECT_EQ(sum, metrics.versions().delay().steady.count());
}

}  // namespace
}  // namespace pipewright
