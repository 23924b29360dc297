// The one order of what happened in a real run: by the measured end, then by row. Rows report in
// pieces, so an action waits here until no row can come before it any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "core/sim/timeline.hpp"
#include "core/train/program.hpp"

namespace pipewright {

class MeasuredOrder {
 public:
  explicit MeasuredOrder(int rows) : rows_(static_cast<std::size_t>(rows)) {}

  /// A row is to execute this, too. In the planned order.
  void expect(Row row, const Action& action);
  /// It has executed something; a row's records come in the order in which it took them. Throws
  /// ProtocolError for what it was not to do.
  void add(Row row, const ActionRecord& record);

  struct Done {
    TimelineEntry entry;
    WeightVersion weight_version;
  };
  /// The next one in the order. Nothing while a row that still has something to do may come before.
  std::optional<Done> next();

  /// End of the last action of a row that next() gave.
  Tick given_until(Row row) const { return at(row).given_until; }
  /// Expected, and not given yet.
  std::size_t held() const { return held_; }
  /// Whether some row has fewer than `count` actions left that it has not reported.
  bool has_row_with_less_than(std::size_t count) const;

 private:
  struct Expected {
    Action action;
    bool is_done = false;
  };
  struct RowState {
    std::deque<Expected> expected;  // from the first that is not done
    std::int64_t first = 0;         // its position in the row's plan
    std::size_t unreported = 0;
    std::deque<Done> done;
    Tick given_until{0};
  };
  RowState& at(Row row) { return rows_[static_cast<std::size_t>(row.value)]; }
  const RowState& at(Row row) const { return rows_[static_cast<std::size_t>(row.value)]; }

  std::vector<RowState> rows_;
  std::size_t held_ = 0;
};

}  // namespace pipewright
