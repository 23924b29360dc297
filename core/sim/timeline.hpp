// When every action of a schedule starts and ends: simulate() and what it gives.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/schedule/schedule.hpp"
#include "core/sim/cost.hpp"
#include "core/sim/link.hpp"

namespace pipewright {

struct TimelineEntry {
  Row row;
  Action action;
  Tick start;
  Tick end;  // exclusive: an action in column t of a plan has start t and end t + 1
  friend bool operator==(const TimelineEntry&, const TimelineEntry&) = default;
};

/// Gives the actions of a schedule with their times, one by one in the global order (DESIGN.md
/// section 4): by the tick in which they end, then by row. Holds no more than what is under way.
class Simulator {
 public:
  Simulator(std::unique_ptr<ScheduleSource> source, CostModel cost, LinkModel link);
  ~Simulator();
  Simulator(Simulator&&) noexcept;
  Simulator& operator=(Simulator&&) noexcept;

  const ScheduleHeader& header() const;
  /// The next entry, or nothing at the end. Throws ConfigError when the schedule cannot go on (it
  /// waits for something that nobody sends), with what each row waits for.
  std::optional<TimelineEntry> next();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// A whole timeline in the global order.
struct Timeline {
  ScheduleHeader header;
  std::vector<TimelineEntry> entries;
};

Timeline simulate(std::unique_ptr<ScheduleSource> source, const CostModel& cost,
                  const LinkModel& link);
Timeline simulate(const Schedule& schedule, const CostModel& cost, const LinkModel& link);

}  // namespace pipewright
