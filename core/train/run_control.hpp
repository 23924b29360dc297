// What a run's coordinator does, without knowing where the rows are: plans, hands out windows of
// instructions, takes reports, and puts everything that happened into its one order. On the real
// clock the plan (and where the objective is observed) is that of the virtual one, and what comes
// out has the measured times.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/archive.hpp"
#include "core/base/fifo.hpp"
#include "core/sim/metrics.hpp"
#include "core/train/job.hpp"
#include "core/train/measured_order.hpp"
#include "core/train/program.hpp"
#include "core/train/stability.hpp"
#include "core/train/theory_tracker.hpp"

namespace pipewright {

/// Takes what a run gives, each kind in its fixed order: actions in the global order, and a point
/// after every action that it counts. So two executions of one job call this with the same values
/// in the same order.
class RunSink {
 public:
  virtual ~RunSink() = default;
  virtual void begin(const ScheduleHeader&) {}
  virtual void action(const TimelineEntry&) {}
  /// Of a real run: what its plan says, on the virtual clock, of every action that is handed out;
  /// in the global order of the plan, each before action() has what came of it.
  virtual void planned(const TimelineEntry&) {}
  /// Loss of a microbatch on the last stage; `tick` is the end of that forward.
  virtual void loss(Tick, Microbatch, double) {}
  /// The full objective with every update that had ended by `tick`.
  virtual void objective(Tick, UpdateCount, double) {}
  /// After each objective of a run with validation data: the same over that data.
  virtual void validation(Tick, UpdateCount, double) {}
  /// After each objective of a run with theory.
  virtual void theory(const TheoryRow&) {}
};

struct RunTotals {
  Tick makespan;
  std::int64_t actions = 0;
  std::int64_t updates = 0;
  std::int64_t microbatches = 0;
  std::int64_t observations = 0;
};

/// What a run gave between two checkpoints: with the plan enough to count all up again.
struct RunValues {
  std::vector<double> losses;        // of the last stage, in the global order
  std::vector<double> update_norms;  // of runs with theory, the same
  std::vector<ObservationValue> values, gradients;
  void archive(Archive& archive);
};

/// The coordinator's part of a checkpoint: its values since the one before.
struct ControlCheckpoint {
  Tick tick;
  std::string values;
};

struct Divergence {
  Tick tick;
  std::string what;  // "the objective is nan"
};

class RunControl {
 public:
  /// `sinks` outlive this.
  RunControl(JobConfig job, ObjectiveShape shape, std::vector<RunSink*> sinks);
  ~RunControl();

  /// The rows are told to store their state as often as the job asks for it. Without this they
  /// never are.
  void store_checkpoints() { checkpoints_ = job_.checkpoint.has_value(); }
  /// The rows go on from the checkpoint of this tick: plan() walks to it and gives everything
  /// until then to the sinks. `next_values` gives the coordinator's parts of this and all
  /// checkpoints before, in their order, then nothing.
  void resume(Tick tick, std::function<std::optional<std::string>()> next_values);
  /// The coordinator's part of a checkpoint, once all before it has come out.
  std::optional<ControlCheckpoint> take_checkpoint();
  /// The part of a row, or the coordinator's, has been stored. True when it was the last of a
  /// checkpoint; another may follow.
  bool checkpoint_part_stored();

  /// Walks on through the schedule to learn its totals, `actions_max` actions at most per call.
  /// True when that is done; windows come after it. Throws ConfigError for a schedule that cannot
  /// go on or asks for too many observations, DataError for a checkpoint that does not fit.
  bool plan(std::int64_t actions_max);
  const RunTotals& totals() const { return totals_; }

  const ScheduleHeader& header() const { return header_; }

  /// Up to `size` more instructions for a row that has few left; nothing when none can be given
  /// now. A row's windows must be executed in their order.
  std::optional<Window> next_window(Row row, std::size_t size);

  /// What a row has done. Throws ProtocolError when it is not what was planned.
  void on_report(const RowReport& report);
  void on_final(RowFinal final);

  /// A value was not finite: no more will come out, the rows can be stopped.
  const std::optional<Divergence>& divergence() const { return divergence_; }
  /// All rows have executed everything and given their weights, or the run has diverged.
  bool finished() const;

  Tick now() const { return metrics_.makespan(); }
  const TimelineMetrics& metrics() const { return metrics_; }

  /// All blocks in the order of the stages, float64 or float32 [parameters]; the average of the
  /// replicas. Empty when the run has diverged: where the rows stopped is not part of the result.
  Tensor weights() const;

  /// What summary.json holds, but for wall time and provenance.
  Value summary() const;

 private:
  struct RowState {
    Fifo<Instruction> queue;
    Fifo<Cut> cuts;  // one for each checkpoint in it
    std::int64_t observations_fed = 0;
    // Fed so far: F, B, B whose gradient goes on, U, and F that waited for an update elsewhere.
    std::int64_t forwards = 0, backwards = 0, gradients = 0, updates = 0, admitted = 0;
    bool told_last = false;
    Fifo<ActionRecord> records;
    Fifo<double> losses;
    Fifo<Tick> observed;  // real clock
    Fifo<double> update_norms;
    std::int64_t bytes_to_next = 0;
    std::int64_t bytes_to_previous = 0;
    std::optional<RowFinal> final;
  };
  /// What is handed out and has not come back: an action, or an observation.
  struct Awaited {
    TimelineEntry entry;
    std::int64_t observation = -1;
    Tick tick;                 // of the observation
    std::int64_t updates = 0;  // that it counts
    bool is_checkpoint = false;
  };
  /// On the way to the checkpoint that the run goes on from.
  struct Replay {
    Tick tick;
    std::function<std::optional<std::string>()> next_values;
    Fifo<double> losses, update_norms;
  };

  /// The first observation below the target, and what had been done by then.
  struct Reached {
    Tick tick;
    std::int64_t updates = 0;
    std::int64_t microbatches = 0;
    std::int64_t messages = 0;
  };

  RowState& at(Row row) { return rows_[static_cast<std::size_t>(row.value)]; }
  bool walk(std::int64_t actions_max);
  void begin_feeding();
  void keep(const TimelineEntry& entry);
  std::optional<TimelineEntry> next_planned();
  void feed(std::size_t ahead_per_row);
  void feed_entry(const TimelineEntry& entry);
  void feed_end();
  void feed_observation(Tick tick, std::int64_t updates);
  void feed_observations_by_k(Row row, Microbatch below);
  void count_update_by_k(const TimelineEntry& entry);
  void drain();
  void drain_measured();
  // run_checkpoint.cpp
  void feed_checkpoint_before(const TimelineEntry& next);
  Cut cut_for(std::int32_t row, Tick tick) const;
  void count_fed(const TimelineEntry& entry);
  bool replay(std::int64_t actions_max);
  void drain_replayed();
  bool load_values();
  void need_values();
  double take_replayed(Fifo<double>& values);
  void emit_checkpoint(Tick tick);
  bool wants_more(std::size_t ahead_per_row) const;
  bool emit_planned(const TimelineEntry& planned);
  void emit_action(const TimelineEntry& entry, std::optional<WeightVersion> version);
  bool emit_observation(const Awaited& awaited);
  std::optional<Tick> measured_tick_of_observation() const;
  void note_validation(Tick tick, UpdateCount updates, double value);
  void note_target(Tick tick, std::int64_t updates, double value);
  Value target_value() const;
  Value perplexity_value() const;
  void check_finite(double value, Tick tick, const char* what);

  JobConfig job_;
  ObjectiveShape shape_;
  std::vector<RunSink*> sinks_;
  ScheduleHeader header_;
  RunTotals totals_;

  std::unique_ptr<Simulator> planner_;
  std::deque<TimelineEntry> plan_;  // all of it, unless it is too long to be kept
  bool is_kept_ = true;
  std::optional<TimelineEntry> planned_next_;  // taken from the plan too early
  bool walked_ = false;
  bool planned_ = false;
  bool fed_all_ = false;
  std::int64_t observe_every_ = 0;  // ticks or updates; 0: never
  std::int64_t next_observation_ = 0;
  std::int64_t observations_fed_ = 0;
  std::int64_t updates_fed_ = 0;
  std::int64_t updates_in_order_ = 0;        // of RPD: all up to this k have been fed
  std::vector<std::int64_t> updates_ahead_;  // and these beyond it
  std::vector<RowState> rows_;
  Fifo<Awaited> awaited_;
  bool checkpoints_ = false;
  std::int64_t next_checkpoint_ = 0;           // ticks or updates
  std::int64_t checkpoint_parts_missing_ = 0;  // of the one under way
  Tick fed_until_{0};
  std::int64_t syncs_fed_ = 0;
  RunValues recorded_;  // since the last checkpoint
  std::optional<ControlCheckpoint> checkpoint_;
  std::optional<Replay> replay_;
  std::optional<MeasuredOrder> measured_;  // real clock
  Tick observed_until_{0};
  Fifo<ObservationValue> values_, gradients_;
  TimelineMetrics metrics_;
  Stability stability_;
  std::optional<Divergence> divergence_;
  std::optional<TheoryTracker> theory_;
  std::optional<Reached> target_;
  std::optional<double> objective_first_, objective_last_, objective_best_, loss_last_;
  std::optional<double> validation_last_, validation_best_;
};

}  // namespace pipewright
