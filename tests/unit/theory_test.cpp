// What theory needs to know of an objective, full gradients, the bound, and targets.
#include <gmock/gmock.h>

#include <cmath>
#include <sstream>

#include "core/base/error.hpp"
#include "core/base/random.hpp"
#include "core/theory/optimum.hpp"
#include "core/theory/rpd_bound.hpp"
#include "core/train/plan_value.hpp"
#include "core/train/result_files.hpp"
#include "tests/support/chain.hpp"
#include "tests/support/memory_files.hpp"
#include "tests/support/runs.hpp"
#include "tests/support/schedule_cases.hpp"

namespace pipewright {
namespace {

using testing::HasSubstr;

theory::RowMatrix dense(const std::vector<double>& x, std::int64_t examples) {
  return {examples, static_cast<std::int64_t>(x.size()) / examples, x.data(), nullptr};
}

TEST(RpdBound, OnHandNumbers) {
  // 2*4*(3-1)/(0.5*8) + 0.5*4*2*9 + 0.25*4*25*9
  const theory::RpdBound bound{.stages = 4,
                               .start_value = 3,
                               .optimum = 1,
                               .step = 0.5,
                               .updates = 8,
                               .smoothness = 2,
                               .gradient_norm = 3,
                               .delay = 5};
  EXPECT_DOUBLE_EQ(bound.value(), 4 + 36 + 225);
}

TEST(Smoothness, IsTheLargestEigenvalueOfTallAndWideMatrices) {
  const std::vector<double> x{3, 0, 0, 4, 0, 0};  // singular values 4 and 3 either way
  EXPECT_DOUBLE_EQ(*theory::largest_gram_eigenvalue(dense(x, 3)), 16);
  EXPECT_DOUBLE_EQ(*theory::largest_gram_eigenvalue(dense({3, 0, 0, 0, 4, 0}, 2)), 16);
  EXPECT_DOUBLE_EQ(*theory::largest_gram_eigenvalue(dense({0, 0}, 1)), 0);
}

TEST(LeastSquares, RevealsTheRank) {
  // Two equal columns: y has a part outside of their span, (0, 0, 2).
  const std::vector<double> x{1, 1, 1, 1, 0, 0};
  const std::vector<double> y{5, 5, 2};
  EXPECT_NEAR(*theory::least_squares_minimum(dense(x, 3), y), 4.0 / 6, 1e-15);
  // More parameters than examples: everything can be fitted.
  EXPECT_NEAR(
      *theory::least_squares_minimum(dense({1, 2, 3, 4, 5, 7}, 2), std::vector<double>{1, 2}), 0,
      1e-28);
  EXPECT_NEAR(*theory::least_squares_minimum(dense({0, 0, 0, 0}, 2), std::vector<double>{3, 4}),
              25.0 / 4, 1e-15);
}

TEST(LogisticMinimum, IsExactWhereItIsKnown) {
  // One feature that is always 1: sigma(w) is the share of ones.
  const std::vector<double> ones{1, 1, 1, 1};
  const double p = 0.75;
  EXPECT_NEAR(*theory::logistic_minimum(dense(ones, 4), std::vector<double>{1, 1, 0, 1}, 0),
              -p * std::log(p) - (1 - p) * std::log(1 - p), 1e-15);
  // The same twice (dependent columns), and beside a column of zeros.
  EXPECT_NEAR(*theory::logistic_minimum(dense({1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0}, 4),
                                        std::vector<double>{1, 1, 0, 1}, 0),
              -p * std::log(p) - (1 - p) * std::log(1 - p), 1e-15);
}

TEST(LogisticMinimum, IsUnknownWhereThereIsNone) {
  // All can be separated; only some can; fewer examples than parameters.
  EXPECT_EQ(theory::logistic_minimum(dense({1, 2, -1, -3}, 4), std::vector<double>{1, 1, 0, 0}, 0),
            std::nullopt);
  EXPECT_EQ(theory::logistic_minimum(dense({1, 0, 1, 0, 0, 1, 0, 2}, 4),
                                     std::vector<double>{1, 0, 1, 1}, 0),
            std::nullopt);
  EXPECT_EQ(theory::logistic_minimum(dense({1, 2, 3, 4, 5, 7}, 2), std::vector<double>{1, 0}, 0),
            std::nullopt);
  // A penalty makes a minimum of it.
  EXPECT_TRUE(
      theory::logistic_minimum(dense({1, 2, -1, -3}, 4), std::vector<double>{1, 1, 0, 0}, 1e-6));
}

TEST(LogisticMinimum, IsTheSameForSparseRows) {
  const std::vector<double> x{1, 0, 0, 2, 0, 3, -1, 0, 0.5, 0, 0, -2, 1, 1, 0};
  SparseRows rows;
  rows.column_count = 3;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] != 0) {
      rows.columns.push_back(static_cast<std::int32_t>(i % 3));
      rows.values.push_back(x[i]);
    }
    if (i % 3 == 2) rows.row_starts.push_back(static_cast<std::int64_t>(rows.values.size()));
  }
  const std::vector<double> y{1, 0, 0, 1, 0};
  const theory::RowMatrix sparse{5, 3, nullptr, &rows};
  EXPECT_NEAR(*theory::logistic_minimum(sparse, y, 0.01),
              *theory::logistic_minimum(dense(x, 5), y, 0.01), 1e-15);
  EXPECT_NEAR(*theory::largest_gram_eigenvalue(sparse),
              *theory::largest_gram_eigenvalue(dense(x, 5)), 1e-14);
  EXPECT_NEAR(*theory::least_squares_minimum(sparse, y),
              *theory::least_squares_minimum(dense(x, 5), y), 1e-15);
}

TEST(Optimum, OfWhatIsTooLargeIsUnknown) {
  const auto size = static_cast<std::size_t>(theory::order_max + 1);
  const std::vector<double> x(size * size, 0.0);
  const std::vector<double> y(size, 0.0);
  const theory::RowMatrix large = dense(x, static_cast<std::int64_t>(size));
  EXPECT_EQ(theory::largest_gram_eigenvalue(large), std::nullopt);
  EXPECT_EQ(theory::least_squares_minimum(large, y), std::nullopt);
  EXPECT_EQ(theory::logistic_minimum(large, y, 0.1), std::nullopt);
}

/// A chain of an objective on data of its own, at random weights.
Chain random_chain(const std::string& kind, int stages) {
  static constexpr int examples = 17, parameters = 7;
  std::ostringstream text;
  RandomStream draws(3, DrawKind::initial_weights, 9);
  for (int i = 0; i < examples; ++i) {
    text << (kind == "logistic" ? i % 3 % 2 : draws.normal());
    for (int j = 1; j <= parameters; ++j) text << ' ' << j << ':' << draws.normal();
    text << '\n';
  }
  MemoryFiles files;
  files.put("data.libsvm", text.str());
  Value given = Value::map();
  set_path(given, "data.libsvm", "data.libsvm");
  given.set("batch_size", 4);
  if (kind == "logistic") given.set("l2", 0.3);
  Chain chain(*load_objective(kind, given, stages, files));
  chain.initialise_random(5);
  return chain;
}

double norm_sq_of(Chain& chain, std::uint64_t id) {
  chain.evaluate(id);
  double norm_sq = 0;
  Tensor back;
  for (std::size_t s = chain.models.size(); s-- > 0;) {
    back = chain.models[s]->full_gradient(chain.weights[s], std::move(back), norm_sq);
  }
  EXPECT_TRUE(back.empty());
  return norm_sq;
}

TEST(FullGradient, IsThatOfFiniteDifferencesForAnyNumberOfStages) {
  for (const std::string kind : {"quadratic", "logistic"}) {
    for (const int stages : {1, 2, 3, 7, 9}) {
      Chain chain = random_chain(kind, stages);
      std::uint64_t id = 1;
      const double norm_sq = norm_sq_of(chain, id++);
      double expected = 0;
      for (Tensor& block : chain.weights) {
        for (std::int64_t i = 0; i < block.elements(); ++i) {
          double& w = block.data<double>()[i];
          const double before = w;
          static constexpr double step = 1e-5;
          w = before + step;
          const double above = chain.evaluate(id++);
          w = before - step;
          const double below = chain.evaluate(id++);
          w = before;
          expected += std::pow((above - below) / (2 * step), 2);
        }
      }
      EXPECT_NEAR(norm_sq, expected, 1e-8 * expected) << kind << ", " << stages << " stages";
    }
  }
}

Value small_job(const std::string& more = "{}") {
  Value job = parameters_from(more);
  set_path(job, "objective.quadratic.generate",
           parameters_from("{kind: random, examples: 60, parameters: 22}"));
  set_path(job, "objective.quadratic.batch_size", 5);
  if (!job.has("schedule")) set_path(job, "schedule.pipedream", pipedream_parameters(4, 60));
  if (!job.has("optimizer")) set_path(job, "optimizer.sgd.learning_rate", 0.02);
  return job;
}

// With the whole data as one batch, the blocks' gradients of plain SGD are the full gradient's.
TEST(Theory, LargestBlockGradientIsMeasuredAtTheUpdates) {
  Value job = small_job(
      "{schedule: {sequential: {stages: 1, microbatches: 6}},"
      " observe: {objective: {every_updates: 1}, theory: true}}");
  set_path(job, "objective.quadratic.batch_size", 60);
  Recorder recorder;
  const RunResult result = run_job(job, recorder);
  const double largest = recorder.theory_rows.front().gradient_norm_sq;  // it only shrinks
  EXPECT_NEAR(std::pow(result.summary.at("theory").at("gradient_norm_max").as_real(), 2), largest,
              1e-12 * largest);
  const TheoryRow& row = recorder.theory_rows[1];
  const Value& theory = result.summary.at("theory");
  const double f0 = recorder.curve.front().value, f = theory.at("optimum").as_real();
  const double l = theory.at("smoothness").as_real();
  EXPECT_NEAR(*row.bound, 2 * (f0 - f) / 0.02 + 0.02 * l * largest, 1e-9 * *row.bound);
}

TEST(Theory, TheBoundIsLeftOutWhereItMakesNoSense) {
  for (const char* more :
       {"{optimizer: {sgd: {learning_rate: 0.01, momentum: 0.9}}}",
        "{optimizer: {sgd: {learning_rate: 0.01, weight_decay: 0.1}}}",
        "{optimizer: {sgd: {learning_rate: 0}}}",
        "{schedule: {local_sgd: {stages: 4, replicas: 3, local_steps: 2, microbatches: 24}}}"}) {
    Value job = small_job(more);
    set_path(job, "observe.theory", true);
    Recorder recorder;
    const RunResult result = run_job(job, recorder);
    EXPECT_TRUE(result.summary.at("theory").has("bound_left_out")) << more;
    for (const TheoryRow& row : recorder.theory_rows) {
      EXPECT_FALSE(row.bound) << more;
      EXPECT_TRUE(row.gap) << more;
      EXPECT_GT(row.gradient_norm_sq, 0) << more;
    }
  }
}

TEST(Theory, IsTheSameForBothPlacementsOfLocalSgd) {
  const auto rows_of = [](const char* placement) {
    Value job = small_job(
        "{schedule: {local_sgd: {stages: 3, replicas: 4, local_steps: 2, microbatches: 24}}}");
    set_path(job, "schedule.local_sgd.placement", placement);
    set_path(job, "observe.theory", true);
    Recorder recorder;
    run_job(job, recorder);
    return std::pair{recorder.theory_rows.front().gradient_norm_sq,
                     recorder.theory_rows.back().gradient_norm_sq};
  };
  EXPECT_EQ(rows_of("colocated"), rows_of("spread"));
}

TEST(Theory, DoesNotChangeTheRun) {
  for (const ScheduleCase& one : all_schedule_cases()) {
    Value job = job_with(one);
    Recorder without, with;
    const RunResult first = run_job(job, without);
    set_path(job, "observe.theory", true);
    const RunResult second = run_job(job, with);
    EXPECT_EQ(without.curve, with.curve) << name_of(one);
    EXPECT_EQ(with.theory_rows.size(), with.curve.size()) << name_of(one);
    EXPECT_EQ(0, std::memcmp(first.weights.buffer().data(), second.weights.buffer().data(),
                             first.weights.bytes()))
        << name_of(one);
  }
}

TEST(Theory, NeedsTheObjective) {
  for (const char* more : {"{observe: {objective: never, theory: true}}",
                           "{observe: {objective: never}, target: 0.5}"}) {
    try {
      check_job(small_job(more));
      FAIL() << more;
    } catch (const ParamError& error) {
      EXPECT_THAT(error.what(), HasSubstr("needs the objective")) << more;
    }
  }
}

TEST(Target, IsReportedWithWhatItTook) {
  Value job = small_job("{observe: {objective: {every_ticks: 1}}}");
  Recorder free;
  run_job(job, free);
  const double target = free.curve[free.curve.size() / 2].value;
  job.set("target", target);
  Recorder recorder;
  const RunResult result = run_job(job, recorder);
  EXPECT_EQ(recorder.curve, free.curve);
  const Value& reached = result.summary.at("target");
  const auto first = std::find_if(recorder.curve.begin(), recorder.curve.end(),
                                  [&](const CurveRow& row) { return row.value < target; });
  ASSERT_NE(first, recorder.curve.end());
  EXPECT_EQ(reached.at("tick").as_integer(), first->tick);
  EXPECT_EQ(reached.at("updates").as_integer(), first->updates);
  std::int64_t messages = 0, microbatches = 0;
  for (const TimelineEntry& entry : recorder.timeline) {
    if (entry.end.value > first->tick) continue;
    const Action& action = entry.action;
    const bool is_last = action.stage == Stage(3);
    microbatches += action.kind == ActionKind::forward && is_last;
    messages += (action.kind == ActionKind::forward && !is_last) ||
                (action.kind == ActionKind::backward && action.stage > Stage(0));
  }
  EXPECT_EQ(reached.at("microbatches").as_integer(), microbatches);
  EXPECT_EQ(reached.at("bytes_sent").as_integer(), messages * 5 * 8);
}

TEST(Target, IsNullWhenItIsNeverReached) {
  Recorder recorder;
  const RunResult result = run_job(small_job("{target: -1}"), recorder);
  const Value& reached = result.summary.at("target");
  EXPECT_EQ(reached.at("value").as_real(), -1);
  for (const char* key : {"tick", "updates", "microbatches", "bytes_sent"}) {
    EXPECT_TRUE(reached.at(key).is_null()) << key;
  }
}

// What the rows have counted is what the plan says.
TEST(Summary, BytesOnLinksAndKnownFormulasAreThoseOfThePlan) {
  for (const ScheduleCase& one : all_schedule_cases()) {
    const Value job = job_with(one);
    Recorder recorder;
    const RunResult result = run_job(job, recorder);
    DiskFiles files;
    const JobConfig config = JobConfig::from(check_job(job));
    const ObjectiveShape shape = config.load_objective(files)->shape();
    const JobConfig sized = config.sized(shape);
    Simulator simulator(sized.make_schedule(shape.batches), sized.cost, sized.link);
    TimelineMetrics metrics(simulator.header());
    while (const auto entry = simulator.next()) metrics.add(*entry);
    const Value plan = plan_value(sized, metrics, &shape);
    for (const char* key : {"links", "bytes_sent", "known", "delay_updates"}) {
      EXPECT_EQ(result.summary.at(key), plan.at(key)) << name_of(one) << " " << key;
    }
    EXPECT_EQ(result.summary.at("messages_sent").as_integer() * shape.activation_bytes,
              plan.at("bytes_sent").as_integer())
        << name_of(one);
  }
}

}  // namespace
}  // namespace pipewright
