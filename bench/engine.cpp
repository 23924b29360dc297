// The engine against the same Eigen operations in a bare loop: Nesterov's quadratic, S = 16,
// objective at every tick, one process. Prints the ratio of the medians of alternating runs.
//   build/release/bench/bench_engine [RUNS]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include <Eigen/Dense>

#include "bench/measure.hpp"
#include "core/data/partition.hpp"
#include "core/train/run.hpp"

namespace pipewright {
namespace {

constexpr int stages = 16;
constexpr std::int64_t microbatches = 600;
constexpr std::int64_t examples = 600;
constexpr std::int64_t parameters = 512;
constexpr std::int64_t batch_size = 5;

Value job() {
  Value job = Value::map();
  set_path(job, "objective.quadratic.generate.kind", "tridiagonal");
  set_path(job, "objective.quadratic.generate.examples", examples);
  set_path(job, "objective.quadratic.generate.parameters", parameters);
  set_path(job, "objective.quadratic.batch_size", batch_size);
  set_path(job, "schedule.pipedream.stages", stages);
  set_path(job, "schedule.pipedream.microbatches", microbatches);
  set_path(job, "optimizer.sgd.learning_rate", 0.00390625);
  set_path(job, "observe.objective.every_ticks", 1);
  return check_job(job);
}

class LastValue : public RunSink {
 public:
  void objective(Tick, UpdateCount, double v) override { value = v; }
  double value = 0;
};

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The products that the run needs and nothing else: per action a batch's, per tick the share of
/// every block that has changed, and the sum of the shares.
class BareLoop {
 public:
  explicit BareLoop(const std::vector<TimelineEntry>& entries) : entries_(entries) {
    for (int s = 0; s < stages; ++s) {
      const auto block = block_range(parameters, stages, Stage(s)).size;
      x_.push_back(Matrix::Random(examples, block));
      w_.push_back(Eigen::VectorXd::Zero(block));
      g_.push_back(Eigen::VectorXd::Zero(block));
      share_.push_back(Eigen::VectorXd::Zero(examples));
      stash_.emplace_back();
    }
    y_ = Eigen::VectorXd::Random(examples);
    z_ = Eigen::VectorXd::Zero(batch_size);
    total_ = Eigen::VectorXd::Zero(examples);
  }

  double run() {
    double value = 0;
    std::vector<bool> changed(stages, true);
    std::size_t at = 0;
    for (std::int64_t tick = 0; at <= entries_.size(); ++tick) {
      for (; at < entries_.size() && entries_[at].end.value <= tick; ++at)
        step(entries_[at], changed);
      value = evaluate(changed);
      if (at == entries_.size()) break;
    }
    return value;
  }

 private:
  void step(const TimelineEntry& entry, std::vector<bool>& changed) {
    const auto s = static_cast<std::size_t>(entry.action.stage.value);
    const auto rows = x_[s].middleRows(
        entry.action.microbatch.value % (examples / batch_size) * batch_size, batch_size);
    if (entry.action.kind == ActionKind::forward) {
      z_.noalias() += rows * w_[s];
      stash_[s].push_back(w_[s]);
    } else if (entry.action.kind == ActionKind::backward) {
      g_[s].noalias() = rows.transpose() * z_;
      stash_[s].erase(stash_[s].begin());
    } else {
      w_[s] -= 1e-9 * g_[s];
      changed[s] = true;
    }
  }

  double evaluate(std::vector<bool>& changed) {
    for (std::size_t s = 0; s < x_.size(); ++s) {
      if (changed[s]) share_[s].noalias() = x_[s] * w_[s];
      changed[s] = false;
      if (s == 0) {
        total_ = share_[s];
      } else {
        total_ += share_[s];
      }
    }
    return (total_ - y_).squaredNorm() / (2.0 * examples);
  }

  const std::vector<TimelineEntry>& entries_;
  std::vector<Matrix> x_;
  std::vector<Eigen::VectorXd> w_, g_, share_;
  std::vector<std::vector<Eigen::VectorXd>> stash_;
  Eigen::VectorXd y_, z_, total_;
};

int run(int runs) {
  const JobConfig config = JobConfig::from(job());
  DiskFiles files;
  const auto objective = config.load_objective(files);
  const auto entries =
      simulate(config.make_schedule(objective->shape().batches), config.cost, config.link).entries;
  std::vector<double> engine, bare, ratios;
  double sink = 0;
  for (int i = 0; i < runs; ++i) {
    LastValue value;
    engine.push_back(
        processor_seconds([&] { run_in_process(config, *objective, files, {&value}); }));
    BareLoop loop(entries);
    bare.push_back(processor_seconds([&] { sink += loop.run(); }));
    ratios.push_back(engine.back() / bare.back());
  }
  std::printf(
      "engine %.1f ms, bare loop %.1f ms, ratio (median of %d pairs) %.2f, %.0f ns per action\n",
      1e3 * median(engine), 1e3 * median(bare), runs, median(ratios),
      1e9 * median(engine) / static_cast<double>(entries.size()));
  return sink == 42 ? 1 : 0;
}

}  // namespace
}  // namespace pipewright

int main(int argc, char** argv) {
  return pipewright::run(argc > 1 ? std::atoi(argv[1]) : 15);
}
