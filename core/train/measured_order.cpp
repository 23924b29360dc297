#include "core/train/measured_order.hpp"

#include <algorithm>
#include <string>

#include "core/base/error.hpp"

namespace pipewright {

void MeasuredOrder::expect(Row row, const Action& action) {
  at(row).expected.push_back({action, false});
  ++at(row).unreported;
  ++held_;
}

void MeasuredOrder::add(Row row, const ActionRecord& record) {
  RowState& state = at(row);
  const auto fault = [&](const std::string& what) {
    throw ProtocolError("row " + std::to_string(row.value) + " reports " + what);
  };
  const std::int64_t index =
      record.position == ActionRecord::next_in_plan ? 0 : record.position - state.first;
  if (index < 0 || index >= static_cast<std::int64_t>(state.expected.size()) ||
      state.expected[static_cast<std::size_t>(index)].is_done) {
    fault("an action that it was not to do, or that it has reported before");
  }
  Expected& expected = state.expected[static_cast<std::size_t>(index)];
  const Tick before = state.done.empty() ? state.given_until : state.done.back().entry.end;
  if (record.end < record.start || record.end < before) {
    fault(expected.action.label() + " from " + std::to_string(record.start.value) + " to " +
          std::to_string(record.end.value) + ", after one that ended at " +
          std::to_string(before.value));
  }
  state.done.push_back({{row, expected.action, record.start, record.end}, record.weight_version});
  expected.is_done = true;
  --state.unreported;
  while (!state.expected.empty() && state.expected.front().is_done) {
    state.expected.pop_front();
    ++state.first;
  }
}

std::optional<MeasuredOrder::Done> MeasuredOrder::next() {
  RowState* first = nullptr;
  for (RowState& row : rows_) {
    if (row.done.empty()) {
      // What a row is told to do later also ends later than all that was reported before.
      if (row.unreported > 0) return std::nullopt;
    } else if (first == nullptr || row.done.front().entry.end < first->done.front().entry.end) {
      first = &row;
    }
  }
  if (first == nullptr) return std::nullopt;
  const Done done = first->done.front();
  first->done.pop_front();
  first->given_until = done.entry.end;
  --held_;
  return done;
}

bool MeasuredOrder::has_row_with_less_than(std::size_t count) const {
  return std::any_of(rows_.begin(), rows_.end(),
                     [&](const RowState& row) { return row.unreported < count; });
}

}  // namespace pipewright
