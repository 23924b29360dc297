#include "core/schedule/schedule.hpp"

namespace pipewright {

std::string_view name_of(Placement placement) {
  return placement == Placement::spread ? "spread" : "colocated";
}

std::int64_t Schedule::actions() const {
  std::int64_t sum = 0;
  for (const auto& row : rows) sum += static_cast<std::int64_t>(row.size());
  return sum;
}

std::optional<Action> HeldSchedule::next(Row row) {
  const auto r = static_cast<std::size_t>(row.value);
  if (at_[r] == schedule_.rows[r].size()) return std::nullopt;
  return schedule_.rows[r][at_[r]++];
}

Schedule collect(ScheduleSource& source) {
  Schedule schedule{source.header(), {}};
  schedule.rows.resize(static_cast<std::size_t>(source.header().rows()));
  // One action per row and turn, so that a generator never has to hold much.
  std::vector<bool> ended(schedule.rows.size());
  for (std::size_t left = schedule.rows.size(); left > 0;) {
    for (std::size_t r = 0; r < schedule.rows.size(); ++r) {
      if (ended[r]) continue;
      if (const auto action = source.next(Row(static_cast<std::int32_t>(r)))) {
        schedule.rows[r].push_back(*action);
      } else {
        ended[r] = true;
        --left;
      }
    }
  }
  return schedule;
}

}  // namespace pipewright
