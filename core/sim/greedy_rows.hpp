// The greedy 1F1B rule that PipeDream and LocalSGD share (DESIGN.md section 4): a stage that can
// run both F and B prefers B until its first B; after that it alternates, the one not done last
// first; with only one ready it runs that. Every B is followed by its block's update.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "core/schedule/batch_order.hpp"
#include "core/schedule/schedule.hpp"
#include "core/sim/pending.hpp"
#include "core/sim/row_rule.hpp"

namespace pipewright {

class GreedyRows {
 public:
  GreedyRows(const ScheduleHeader& header, BatchOrder batches)
      : stages_(header.stages),
        batches_(std::move(batches)),
        rows_(static_cast<std::size_t>(header.rows())) {}

  bool is_first(Row row) const { return row.value % stages_ == 0; }

  /// What `row` does next, of what `is_given`. On a first stage `admit()` tells which microbatch it
  /// could begin.
  template <class Admit, class IsGiven>
  std::optional<Action> pick(Row row, Admit&& admit, const IsGiven& is_given) {
    RowState& state = at(row);
    if (state.to_update && is_given(ActionKind::update, *state.to_update)) {
      const Microbatch m = *state.to_update;
      state.to_update.reset();
      return make(ActionKind::update, row, m);
    }
    std::optional<Microbatch> forward;
    if (is_first(row)) {
      forward = admit();
    } else if (!state.activations.empty()) {
      forward = state.activations.front();
    }
    if (forward && !is_given(ActionKind::forward, *forward)) forward.reset();
    const bool can_backward = !state.gradients.empty() && !state.to_update &&
                              is_given(ActionKind::backward, state.gradients.front());
    // Before the first B the last action was an F, so "not the last one" prefers B as the rule
    // asks.
    if (can_backward && (!forward || state.last_was_forward)) {
      const Microbatch m = state.gradients.front();
      state.gradients.pop();
      state.last_was_forward = false;
      return make(ActionKind::backward, row, m);
    }
    if (!forward) return std::nullopt;
    if (!is_first(row)) state.activations.pop();
    state.last_was_forward = true;
    return make(ActionKind::forward, row, *forward);
  }

  void arrived(Row row, const Action& cause) {
    RowState& state = at(row);
    (cause.kind == ActionKind::forward ? state.activations : state.gradients).add(cause.microbatch);
  }

  void ended(Row row, const Action& action) {
    RowState& state = at(row);
    const bool is_last = row.value % stages_ + 1 == stages_;
    if (action.kind == ActionKind::forward && is_last) state.gradients.add(action.microbatch);
    if (action.kind == ActionKind::backward) state.to_update = action.microbatch;
  }

 private:
  struct RowState {
    bool last_was_forward = true;
    std::optional<Microbatch> to_update;
    PendingInputs activations;
    PendingInputs gradients;
  };

  RowState& at(Row row) { return rows_[static_cast<std::size_t>(row.value)]; }

  Action make(ActionKind kind, Row row, Microbatch m) {
    Action action;
    action.kind = kind;
    action.stage = Stage(row.value % stages_);
    action.microbatch = m;
    action.batch = batches_.of(m);
    return action;
  }

  int stages_;
  BatchOrder batches_;
  std::vector<RowState> rows_;
};

}  // namespace pipewright
