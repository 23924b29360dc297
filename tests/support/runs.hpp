// Running jobs in one process in tests.
#pragma once

#include <string>
#include <vector>

#include "core/train/run.hpp"
#include "tests/support/shared.hpp"

namespace pipewright {

struct CurveRow {
  std::int64_t tick;
  std::int64_t updates;
  double value;
  friend bool operator==(const CurveRow&, const CurveRow&) = default;
};

/// Keeps everything that a run gives.
class Recorder : public RunSink {
 public:
  void action(const TimelineEntry& entry) override { timeline.push_back(entry); }
  void loss(Tick tick, Microbatch m, double value) override {
    losses.push_back({tick.value, m.value, value});
  }
  void objective(Tick tick, UpdateCount updates, double value) override {
    curve.push_back({tick.value, updates.value, value});
  }
  void validation(Tick tick, UpdateCount updates, double value) override {
    validation_curve.push_back({tick.value, updates.value, value});
  }
  void theory(const TheoryRow& row) override { theory_rows.push_back(row); }

  std::vector<TimelineEntry> timeline;
  std::vector<CurveRow> losses;  // `updates` holds the microbatch
  std::vector<CurveRow> curve;
  std::vector<CurveRow> validation_curve;
  std::vector<TheoryRow> theory_rows;
};

/// {kind: parameters} as a job file has it.
inline Value one_of(const std::string& kind, Value parameters) {
  return Value(Value::Map{{kind, std::move(parameters)}});
}

/// A job on `npy` data of ../shared/golden, PipeDream, objective at every tick.
inline Value golden_job(const std::string& experiment, const std::string& objective,
                        std::int64_t batch_size, const std::string& schedule, Value schedule_params,
                        double learning_rate) {
  Value job = Value::map();
  const std::string base = shared_path("golden/" + experiment);
  set_path(job, "objective." + objective + ".data.npy.x", base + "_X.npy");
  set_path(job, "objective." + objective + ".data.npy.y", base + "_y.npy");
  set_path(job, "objective." + objective + ".batch_size", batch_size);
  job.set("schedule", one_of(schedule, std::move(schedule_params)));
  set_path(job, "optimizer.sgd.learning_rate", learning_rate);
  set_path(job, "observe.objective.every_ticks", 1);
  return job;
}

inline Value pipedream_parameters(int stages, std::int64_t microbatches) {
  Value parameters = Value::map();
  parameters.set("stages", stages);
  parameters.set("microbatches", microbatches);
  return parameters;
}

/// PipeDream of three stages on a random quadratic of 11 parameters, batches of 4 examples.
inline Value small_quadratic_job(int examples, int microbatches) {
  Value job = Value::map();
  set_path(job, "objective.quadratic.generate.kind", "random");
  set_path(job, "objective.quadratic.generate.examples", examples);
  set_path(job, "objective.quadratic.generate.parameters", 11);
  set_path(job, "objective.quadratic.batch_size", 4);
  set_path(job, "schedule.pipedream.stages", 3);
  set_path(job, "schedule.pipedream.microbatches", microbatches);
  set_path(job, "optimizer.sgd.learning_rate", 0.02);
  return job;
}

inline RunResult run_job(const Value& tree, RunSink& sink) {
  DiskFiles files;
  return run_in_process(JobConfig::from(check_job(tree)), files, {&sink});
}

}  // namespace pipewright
