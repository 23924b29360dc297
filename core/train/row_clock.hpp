// Where a row has its time from: the schedule's, which is computed, or the machine's, which is
// waited for. The machine's own clock is handed in; core has none.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>

#include "core/base/ids.hpp"

namespace pipewright {

class RowClock {
 public:
  virtual ~RowClock() = default;
  virtual bool is_real() const = 0;
  /// Whether that time is over. One that is not has to be waited for.
  virtual bool has_come(Tick tick) const = 0;
  /// When an action begins, now, whose inputs could be used from `ready` on.
  virtual Tick begin(Tick ready) const = 0;
  /// When an action that has been computed ends: not before `start` + `cost`.
  virtual Tick end(Tick start, Tick cost) const = 0;
};

/// Time goes on as far as the schedule says: nothing is waited for.
class VirtualClock : public RowClock {
 public:
  bool is_real() const override { return false; }
  bool has_come(Tick) const override { return true; }
  Tick begin(Tick ready) const override { return ready; }
  Tick end(Tick start, Tick cost) const override { return start + cost; }
};

/// Ticks are nanoseconds since the run's common start. Computing takes as long as it takes, or as
/// long as it is to cost, whichever is longer.
class RealClock : public RowClock {
 public:
  explicit RealClock(std::function<Tick()> now) : now_(std::move(now)) {}
  bool is_real() const override { return true; }
  bool has_come(Tick tick) const override { return now_() >= tick; }
  Tick begin(Tick ready) const override { return std::max(now_(), ready); }
  Tick end(Tick start, Tick cost) const override { return std::max(now_(), start + cost); }

 private:
  std::function<Tick()> now_;
};

}  // namespace pipewright
