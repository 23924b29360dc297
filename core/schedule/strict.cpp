#include "core/schedule/strict.hpp"

#include <algorithm>

#include "core/base/error.hpp"

namespace pipewright {

StrictSource::StrictSource(ScheduleHeader header, StrictCounts counts,
                           const ScheduleContext& context)
    : header_(std::move(header)),
      counts_(std::move(counts)),
      batches_(context.batch_order()),
      rows_(static_cast<std::size_t>(header_.stages)) {
  const auto& warm_up = counts_.warm_up;
  if (warm_up.size() != rows_.size()) {
    throw ParamError("warm_up", "has " + std::to_string(warm_up.size()) + " counts for " +
                                    std::to_string(rows_.size()) + " stages");
  }
  for (std::size_t s = 1; s < warm_up.size(); ++s) {
    // Stage s sends nothing back before warm_up[s] + 1 forwards have come, and the stage before it
    // sends no more than warm_up[s - 1] + 1 before something comes back.
    if (warm_up[s] > warm_up[s - 1]) {
      throw ParamError("warm_up",
                       "stage " + std::to_string(s) + " has " + std::to_string(warm_up[s]) +
                           ", more than the " + std::to_string(warm_up[s - 1]) + " of stage " +
                           std::to_string(s - 1) + ": they would wait for each other for ever");
    }
  }
}

std::optional<Action> StrictSource::next(Row row) {
  Position& at = rows_[static_cast<std::size_t>(row.value)];
  std::int64_t size = std::min(counts_.group, header_.microbatches - at.first);
  Action action;
  action.stage = Stage(row.value);
  const auto emit = [&](ActionKind kind, std::int64_t in_group) {
    action.kind = kind;
    action.microbatch = Microbatch(at.first + in_group);
    action.batch = batches_.of(action.microbatch);
    return action;
  };
  if (at.owes_update) {
    at.owes_update = false;
    return emit(ActionKind::update, at.backwards - 1);
  }
  if (at.backwards == size && size > 0) {
    at = {at.first + size, 0, 0, false};
    size = std::min(counts_.group, header_.microbatches - at.first);
  }
  if (size == 0) return std::nullopt;
  const std::int64_t warm_up = counts_.warm_up[static_cast<std::size_t>(row.value)];
  const bool wants_forward = at.forwards - at.backwards <= warm_up;
  if (wants_forward && at.forwards < size) return emit(ActionKind::forward, at.forwards++);
  ++at.backwards;
  at.owes_update = !counts_.update_at_flush || at.backwards == size;
  return emit(ActionKind::backward, at.backwards - 1);
}

std::vector<std::int64_t> default_warm_up(int stages) {
  std::vector<std::int64_t> counts;
  for (int s = 0; s < stages; ++s) counts.push_back(stages - 1 - s);
  return counts;
}

}  // namespace pipewright
