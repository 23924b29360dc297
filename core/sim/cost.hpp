// How long the actions of a stage take.
#pragma once

#include <optional>
#include <vector>

#include "core/base/params.hpp"
#include "core/schedule/action.hpp"
#include "core/sim/jitter.hpp"

namespace pipewright {

/// Ticks per stage and kind. F and B take at least one tick, U and SYNC may take none.
class CostModel {
 public:
  /// F = B = 1, U = SYNC = 0: the time model of the paper.
  CostModel() = default;
  CostModel(Tick forward, Tick backward, Tick update = Tick(0));

  Tick of(ActionKind kind, Stage stage, Microbatch microbatch) const {
    const auto& times = times_[static_cast<std::size_t>(kind)];
    const auto s = static_cast<std::size_t>(stage.value);
    const Tick time = s < times.size() ? times[s] : times.back();
    return jitter_ && time > Tick(0) ? jittered(time, kind, stage, microbatch) : time;
  }

  /// What the kind takes at every stage and microbatch, if that is the same everywhere.
  std::optional<Tick> uniform(ActionKind kind) const;
  /// The time model of the paper: F = B = 1, U = SYNC = 0.
  bool is_unit() const;

  /// What a sync costs each stage.
  void set_sync(std::vector<Tick> per_stage) { times_[3] = std::move(per_stage); }

  /// The `cost` map of a job file.
  static ParamSpec spec();
  /// From a checked `cost` map for a pipeline of `stages`; durations become nanoseconds. Throws
  /// ParamError (path relative to the map) for a list of the wrong length or a stage that is not
  /// there.
  static CostModel from(const Value& parameters, int stages, std::uint64_t seed);

 private:
  Tick jittered(Tick time, ActionKind kind, Stage stage, Microbatch microbatch) const;

  // Per kind F, B, U, SYNC: one time per stage; the last one stands for all stages beyond.
  std::vector<Tick> times_[4] = {{Tick(1)}, {Tick(1)}, {Tick(0)}, {Tick(0)}};
  std::optional<Jitter> jitter_;
  std::uint64_t seed_ = 0;
};

/// A checked value of ParamType::time: ticks, or a duration in nanoseconds.
Tick tick_from(const Value& time);

}  // namespace pipewright
