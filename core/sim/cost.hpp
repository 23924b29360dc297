// How long the actions of a stage take.
#pragma once

#include <vector>

#include "core/base/params.hpp"
#include "core/schedule/action.hpp"

namespace pipewright {

/// Ticks per stage and kind. F and B take at least one tick, U may take none; a SYNC takes none.
class CostModel {
 public:
  /// F = B = 1, U = 0: the time model of the paper.
  CostModel() = default;
  CostModel(Tick forward, Tick backward, Tick update = Tick(0));

  Tick of(ActionKind kind, Stage stage) const {
    if (kind == ActionKind::sync) return Tick(0);
    const auto& times = times_[static_cast<std::size_t>(kind)];
    const auto s = static_cast<std::size_t>(stage.value);
    return s < times.size() ? times[s] : times.back();
  }

  /// The `cost` map of a job file.
  static ParamSpec spec();
  /// From a checked `cost` map for a pipeline of `stages`; durations become nanoseconds. Throws
  /// ParamError (path relative to the map) for a list of the wrong length or a stage that is not
  /// there.
  static CostModel from(const Value& parameters, int stages);

 private:
  // Per kind F, B, U: one time per stage; the last one stands for all stages beyond.
  std::vector<Tick> times_[3] = {{Tick(1)}, {Tick(1)}, {Tick(0)}};
};

/// A checked value of ParamType::time: ticks, or a duration in nanoseconds.
Tick tick_from(const Value& time);

}  // namespace pipewright
