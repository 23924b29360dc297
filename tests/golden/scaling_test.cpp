// Objective at a fixed budget of ticks for S = 2..32 and a grid of learning rates, against the
// paper authors' simulator (../shared/golden/README.md).
#include <cmath>
#include <fstream>

#include "core/base/text.hpp"
#include "core/train/run_table.hpp"
#include "tests/support/runs.hpp"

namespace pipewright {
namespace {

struct GoldenRow {
  std::int64_t stages;
  double learning_rate;
  double objective;
  std::int64_t budget;
};

std::vector<GoldenRow> golden_rows(std::string_view method) {
  std::ifstream file(shared_path("golden/logistic_fixed_time_scaling.csv"));
  std::vector<GoldenRow> rows;
  for (std::string line; std::getline(file, line);) {
    const auto cells = split(trim(line), ',');
    if (cells[1] != method) continue;
    rows.push_back({*parse_integer(cells[0]), *parse_real(cells[2]), *parse_real(cells[3]),
                    *parse_integer(cells[4])});
  }
  return rows;
}

Value scaling_job(const std::string& schedule) {
  Value parameters = Value::map();
  parameters.set("stages", 2);
  parameters.set("microbatches", 300);
  Value job = golden_job("logistic_s16", "logistic", 10, schedule, parameters, 1);
  set_path(job, "objective.logistic.l2", 1e-4);
  return job;
}

void expect_near_golden(double value, const GoldenRow& row) {
  EXPECT_NEAR(value, row.objective, 1e-6 * row.objective)
      << "S = " << row.stages << ", learning rate " << row.learning_rate;
}

/// Runs all of a job and keeps the objective at the last tick that is not after `budget` of a run.
template <class Budget>
std::vector<double> at_budget(const JobRuns& runs, std::vector<Value>& summaries, Budget&& budget) {
  std::vector<double> values;
  for (std::uint32_t i = 0; i < runs.size(); ++i) {
    DiskFiles files;
    Recorder recorder;
    summaries.push_back(
        run_in_process(JobConfig::from(runs.run(i).job), files, {&recorder}).summary);
    double value = NAN;
    for (const CurveRow& row : recorder.curve) {
      if (row.tick <= budget(i)) value = row.value;
    }
    values.push_back(value);
  }
  return values;
}

TEST(FixedTimeScaling, PipeDreamEndsAtTheSimulatorsObjectives) {
  PIPEWRIGHT_NEEDS_SHARED("golden/logistic_fixed_time_scaling.csv");
  Value job = scaling_job("pipedream");
  set_path(job, "observe.objective", one_of("every_ticks", 100));
  Value sweep = Value::map();
  sweep.set("schedule.pipedream.stages", one_of("log2", Value::List{1, 5}));
  sweep.set("optimizer.sgd.learning_rate", one_of("log2", Value::List{-7, 0}));
  job.set("sweep", sweep);
  const JobRuns runs(check_job(job));
  const auto rows = golden_rows("pipedream");
  ASSERT_EQ(runs.size(), rows.size());
  ASSERT_EQ(rows.size(), 40U);
  std::vector<Value> summaries;
  const auto values = at_budget(runs, summaries, [&](std::size_t i) { return rows[i].budget; });
  std::size_t least = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ASSERT_EQ(summaries[i].at("makespan_ticks").as_integer(), rows[i].budget);
    expect_near_golden(values[i], rows[i]);
    if (rows[i].objective < rows[least].objective) least = i;
  }
  // S = 32 with 0.25, inside the grid of rates and at its edge of stages.
  const Value table = run_table(runs, summaries);
  EXPECT_EQ(find_path(table, "best.by_final.point")->as_integer(),
            static_cast<std::int64_t>(least));
  const Value::List& edges = find_path(table, "best.by_final.edges")->as_list();
  ASSERT_EQ(edges.size(), 1U);
  EXPECT_EQ(edges[0].at("key").as_text(), "schedule.pipedream.stages");
}

TEST(FixedTimeScaling, LocalSgdIsAtTheSimulatorsObjectivesWhenTheBudgetIsSpent) {
  PIPEWRIGHT_NEEDS_SHARED("golden/logistic_fixed_time_scaling.csv");
  Value job = scaling_job("local_sgd");
  set_path(job, "schedule.local_sgd.local_steps", 5);
  set_path(job, "schedule.local_sgd.replicas", 2);
  const auto rows = golden_rows("local_sgd_h5");
  ASSERT_EQ(rows.size(), 40U);
  Value points = Value::list();
  for (const GoldenRow& row : rows) {
    Value point = Value::map();
    point.set("schedule.local_sgd.stages", row.stages);
    point.set("schedule.local_sgd.replicas", row.stages);
    point.set("optimizer.sgd.learning_rate", row.learning_rate);
    point.set("observe.objective.every_ticks", row.budget);
    points.as_list().push_back(std::move(point));
  }
  job.set("sweep", points);
  const JobRuns runs(check_job(job));
  ASSERT_EQ(runs.size(), rows.size());
  std::vector<Value> summaries;
  const auto values = at_budget(runs, summaries, [&](std::size_t i) { return rows[i].budget; });
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ASSERT_GE(summaries[i].at("makespan_ticks").as_integer(), rows[i].budget);
    expect_near_golden(values[i], rows[i]);
  }
}

}  // namespace
}  // namespace pipewright
