// Schedules that are fixed by counts alone: a stage runs its warm-up forwards, then one F and one B
// in turn, then the backwards that are left. Microbatches come in groups; a stage's block is
// updated after every B, or once at the end of each group (the flush).
#pragma once

#include <vector>

#include "core/schedule/kind.hpp"

namespace pipewright {

struct StrictCounts {
  /// Forwards of a stage before its first F-B pair; not above those of the stage before it.
  std::vector<std::int64_t> warm_up;
  std::int64_t group = 1;        // microbatches per group
  bool update_at_flush = false;  // else after every B
};

class StrictSource : public ScheduleSource {
 public:
  /// Throws ParamError("warm_up", ...) for counts that would make stages wait for each other.
  StrictSource(ScheduleHeader header, StrictCounts counts, const ScheduleContext& context);

  const ScheduleHeader& header() const override { return header_; }
  std::optional<Action> next(Row row) override;

 private:
  struct Position {
    std::int64_t first = 0;     // microbatch of the group
    std::int64_t forwards = 0;  // done in the group
    std::int64_t backwards = 0;
    bool owes_update = false;  // of the B before
  };

  ScheduleHeader header_;
  StrictCounts counts_;
  BatchOrder batches_;
  std::vector<Position> rows_;
};

/// S - 1 - s: what keeps every stage busy without latency.
std::vector<std::int64_t> default_warm_up(int stages);

}  // namespace pipewright
