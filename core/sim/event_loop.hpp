// The discrete-event loop under simulate() and under the schedules that decide by what is ready. It
// knows about time, rows and messages; which action an idle row begins is up to the Policy:
//
//   std::optional<Action> pick(Row row);          an action that `row` can begin now
//   void arrived(Row row, const Action& cause);   the output of `cause` (an F of the row before, a
//   B of
//                                                 the row after) can be used by `row` from now on
//   void began(Row row, const Action& action);    `row` has begun what was picked for it
//   void ended(Row row, const Action& action);    `row` has finished `action`
//   bool wakes_first_row(const Action& action);   optional: row 0 may have something to begin after
//   it
//
// All that happens in a tick is known before any row picks in it, and rows pick in ascending order.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "core/base/check.hpp"
#include "core/sim/tick_queue.hpp"
#include "core/sim/timeline.hpp"

namespace pipewright {

template <class Policy>
class EventLoop {
 public:
  EventLoop(const ScheduleHeader& header, CostModel cost, LinkModel link, Policy& policy)
      : header_(header),
        cost_(std::move(cost)),
        link_(std::move(link)),
        policy_(policy),
        rows_(static_cast<std::size_t>(header.rows())),
        links_(rows_.size()) {
    for (std::size_t r = 0; r < rows_.size(); ++r) touch(r);
    start_idle_rows();
    order_bucket();
  }

  /// The next entry in the global order, or nothing when nothing is under way any more.
  std::optional<TimelineEntry> next() {
    while (at_ == bucket_.size()) {
      if (events_.empty()) return std::nullopt;
      run_tick();
    }
    return bucket_[at_++];
  }

 private:
  struct RowState {
    bool busy = false;
    bool touched = false;
    Action action;
    Tick start;
  };
  /// The end of what a row does, or a message that comes to it.
  struct Event {
    std::int32_t row;
    bool is_arrival;
    Action cause;  // of an arrival
  };

  void run_tick() {
    bucket_.clear();
    at_ = 0;
    now_ = events_.next_tick();
    events_.take_next(due_);
    for (const Event& event : due_) {
      const auto r = static_cast<std::size_t>(event.row);
      if (event.is_arrival) {
        policy_.arrived(Row(event.row), event.cause);
        touch(r);
      } else {
        finish(r);
      }
    }
    start_idle_rows();
    order_bucket();
  }

  /// Rows begin in ascending order; what a zero-time action sets free joins the end of the list.
  void start_idle_rows() {
    if (!std::is_sorted(touched_.begin(), touched_.end())) {
      std::sort(touched_.begin(), touched_.end());
    }
    for (std::size_t i = 0; i < touched_.size(); ++i) {
      const std::size_t r = touched_[i];
      rows_[r].touched = false;
      while (!rows_[r].busy) {
        const auto action = policy_.pick(row_id(r));
        if (!action) break;
        policy_.began(row_id(r), *action);
        start(r, *action);
      }
    }
    touched_.clear();
  }

  void start(std::size_t r, const Action& action) {
    RowState& row = rows_[r];
    row.busy = true;
    row.action = action;
    row.start = now_;
    if (action.kind == ActionKind::sync) {
      // A barrier: it begins on all rows when the last has come to it.
      if (++rows_in_sync_ < rows_.size()) return;
      rows_in_sync_ = 0;
      for (std::size_t all = 0; all < rows_.size(); ++all) {
        rows_[all].start = now_;
        run_for(all, cost_.of(ActionKind::sync, header_.stage_of(row_id(all)), action.microbatch));
      }
      return;
    }
    run_for(r, cost_.of(action.kind, action.stage, action.microbatch));
  }

  void run_for(std::size_t r, Tick duration) {
    if (duration == Tick(0)) {
      finish(r);
    } else {
      events_.add(now_ + duration, {static_cast<std::int32_t>(r), false, {}});
    }
  }

  void finish(std::size_t r) {
    RowState& row = rows_[r];
    row.busy = false;
    bucket_.push_back({row_id(r), row.action, row.start, now_});
    policy_.ended(row_id(r), row.action);
    if constexpr (requires { policy_.wakes_first_row(row.action); }) {
      if (policy_.wakes_first_row(row.action)) touch(0);
    }
    const int stage = header_.stage_of(row_id(r)).value;
    if (row.action.kind == ActionKind::forward && stage + 1 < header_.stages) {
      send(links_[r].to_next, r + 1, row.action);
    } else if (row.action.kind == ActionKind::backward && stage > row.action.backward_to.value) {
      send(links_[r].to_previous, r - 1, row.action);
    }
    touch(r);
  }

  void send(LinkQueue& queue, std::size_t to, const Action& cause) {
    const Tick arrival =
        link_.arrival(queue, cause.stage, header_.stage_of(row_id(to)), cause.microbatch, now_);
    if (arrival == now_) {
      policy_.arrived(row_id(to), cause);
      touch(to);
    } else {
      events_.add(arrival, {static_cast<std::int32_t>(to), true, cause});
    }
  }

  void touch(std::size_t r) {
    if (rows_[r].touched) return;
    rows_[r].touched = true;
    touched_.push_back(r);
  }

  void order_bucket() {
    const auto by_row = [](const auto& a, const auto& b) { return a.row < b.row; };
    if (std::is_sorted(bucket_.begin(), bucket_.end(), by_row)) return;
    std::stable_sort(bucket_.begin(), bucket_.end(), by_row);
  }

  static Row row_id(std::size_t r) { return Row(static_cast<std::int32_t>(r)); }

  ScheduleHeader header_;
  CostModel cost_;
  LinkModel link_;
  Policy& policy_;
  Tick now_{0};
  struct RowLinks {
    LinkQueue to_next, to_previous;
  };
  std::vector<RowState> rows_;
  std::vector<RowLinks> links_;
  std::size_t rows_in_sync_ = 0;
  std::vector<std::size_t> touched_;
  TickQueue<Event> events_;
  std::vector<Event> due_;             // in this tick
  std::vector<TimelineEntry> bucket_;  // what ended in this tick
  std::size_t at_ = 0;
};

}  // namespace pipewright
