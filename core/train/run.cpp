#include "core/train/run.hpp"

#include "core/base/error.hpp"
#include "core/train/setup.hpp"

namespace pipewright {

namespace {

/// Instructions that a row gets at once: enough to make handing out cheap, few enough to stay in
/// cache.
constexpr std::size_t window_size = 64;

/// All rows of a run in one thread.
class LocalRows : public Outbox {
 public:
  LocalRows(const JobConfig& job, FileSource& files, const Objective& objective) {
    const int rows = job.schedule_header().rows();
    for (int r = 0; r < rows; ++r) {
      rows_.push_back(
          std::make_unique<RowRunner>(make_row(job, objective, files, Row(r)), *this, time_));
    }
  }

  void send(Message message) override {
    sent_ = true;
    rows_[static_cast<std::size_t>(message.to_row.value)]->deliver(std::move(message));
  }

  /// One turn: each row works until it waits for something. False when no row could do anything.
  bool turn(RunControl& control) {
    bool moved = false;
    sent_ = false;
    for (const auto& row : rows_) {
      while (true) {
        const RowRunner::Step step = row->step();
        if (step == RowRunner::Step::ran) {
          moved = true;
        } else if (step == RowRunner::Step::starved) {
          const auto window = control.next_window(row->row(), window_size);
          if (!window) break;
          row->append(*window);
          moved = true;
        } else {
          break;
        }
      }
      if (row->has_report()) {
        report_ = row->take_report(std::move(report_));
        control.on_report(report_);
      }
    }
    // What a row does for observations is no step, but another row may wait for it.
    return moved || sent_;
  }

  void restore(CheckpointStore& store) {
    for (const auto& row : rows_) row->restore(store.row(row->row()));
  }

  /// Gives to the store what rows and coordinator have.
  void store_checkpoints(RunControl& control, CheckpointStore& store) {
    const auto stored = [&](Tick tick) {
      if (control.checkpoint_part_stored()) store.complete(tick);
    };
    for (const auto& row : rows_) {
      if (const auto part = row->take_checkpoint()) {
        store.put_row(part->tick, row->row(), part->bytes);
        stored(part->tick);
      }
    }
    if (const auto part = control.take_checkpoint()) {
      store.put_values(part->tick, part->values);
      stored(part->tick);
    }
  }

  void finish(RunControl& control) {
    for (const auto& row : rows_) control.on_final(row->take_final());
  }

 private:
  const VirtualClock time_;
  std::vector<std::unique_ptr<RowRunner>> rows_;
  RowReport report_;
  bool sent_ = false;
};

void check_cancelled(const RunHooks& hooks) {
  if (hooks.cancelled && hooks.cancelled()) throw ConfigError("cancelled");
}

}  // namespace

RunResult run_in_process(const JobConfig& job, FileSource& files, std::vector<RunSink*> sinks,
                         const RunHooks& hooks) {
  return run_in_process(job, *job.load_objective(files), files, std::move(sinks), hooks);
}

RunResult run_in_process(const JobConfig& job, const Objective& objective, FileSource& files,
                         std::vector<RunSink*> sinks, const RunHooks& hooks) {
  if (job.is_real) {
    throw ParamError("clock",
                     "`real` needs ranks, which exchange messages while others compute: submit the "
                     "job to a pool (pipewright up, pipewright submit JOB.yaml), or run it with "
                     "mpirun -n RANKS pipewright-worker --run JOB.yaml --out DIR. Here it can run "
                     "with --set clock=virtual");
  }
  RunControl control(job, shape_for(job, objective), std::move(sinks));
  CheckpointStore* const store = hooks.checkpoints;
  if (store != nullptr) control.store_checkpoints();
  const bool resumes = store != nullptr && store->resume_from();
  if (resumes) control.resume(*store->resume_from(), [=] { return store->next_values(); });
  while (!control.plan(100'000)) {
    check_cancelled(hooks);
    if (hooks.progress) hooks.progress(control);
  }
  LocalRows rows(job, files, objective);
  if (resumes) rows.restore(*store);
  while (!control.divergence()) {
    check_cancelled(hooks);
    if (!rows.turn(control)) break;
    if (store != nullptr) rows.store_checkpoints(control, *store);
    if (hooks.progress) hooks.progress(control);
  }
  rows.finish(control);
  if (!control.finished()) {
    throw ConfigError("the run cannot go on: every row waits for another");
  }
  return {control.summary(), control.weights(), control.divergence()};
}

}  // namespace pipewright
