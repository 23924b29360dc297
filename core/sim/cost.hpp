// How long the actions of a stage take.
#pragma once

#include <vector>

#include "core/base/params.hpp"
#include "core/schedule/action.hpp"

namespace pipewright {

/// Ticks per stage and kind. F and B take at least one tick, U and SYNC may take none.
class CostModel {
 public:
  /// F = B = 1, U = SYNC = 0: the time model of the paper.
  CostModel() = default;
  CostModel(Tick forward, Tick backward, Tick update = Tick(0));

  Tick of(const Action& action) const { return of(action.kind, action.stage, action.microbatch); }
  Tick of(ActionKind kind, Stage stage, Microbatch microbatch) const;

  void set_straggler(Stage stage, double factor);

  /// The `cost` map of a job file.
  static ParamSpec spec();
  /// From a checked `cost` map. Times given as durations become nanoseconds.
  static CostModel from(const Value& parameters);

 private:
  Tick base_[3] = {Tick(1), Tick(1), Tick(0)};
  std::vector<double> factor_;  // per stage; 1 beyond its end
};

}  // namespace pipewright
