// The parts of a row that decides about its order by itself, among what it was handed out.
#include <algorithm>

#include "core/train/row_runner.hpp"

namespace pipewright {

namespace {

ActionKind kind_of(Instruction::Kind kind) {
  switch (kind) {
    case Instruction::Kind::forward:
      return ActionKind::forward;
    case Instruction::Kind::backward:
      return ActionKind::backward;
    case Instruction::Kind::sync:
      return ActionKind::sync;
    default:
      return ActionKind::update;
  }
}

}  // namespace

void RowRunner::append_online(const Instruction& instruction) {
  if (instruction.kind == Instruction::Kind::observe) {
    observations_due_.push_back({instruction, updates_given_, syncs_given_});
    return;
  }
  updates_given_ += instruction.kind == Instruction::Kind::update;
  syncs_given_ += instruction.kind == Instruction::Kind::sync;
  program_.push_back({instruction, actions_given_++});
}

void RowRunner::observe_what_is_due() {
  while (!observations_due_.empty() && observations_due_.front().updates == updates_done_ &&
         observations_due_.front().syncs == syncs_done_) {
    observe(observations_due_.front().instruction);
    observations_due_.pop_front();
  }
}

/// Brings what the rule picks to the front of the program. False when it picks nothing of it.
bool RowRunner::choose() {
  if (chosen_) return true;
  const auto find = [&](ActionKind kind, Microbatch m) {
    return std::find_if(program_.begin() + static_cast<std::ptrdiff_t>(at_), program_.end(),
                        [&](const Planned& planned) {
                          return kind_of(planned.instruction.kind) == kind &&
                                 planned.instruction.microbatch == m;
                        });
  };
  chosen_ = setup_.rule->pick(
      [&](ActionKind kind, Microbatch m) { return find(kind, m) != program_.end(); });
  if (!chosen_) return false;
  const auto at = find(chosen_->kind, chosen_->microbatch);
  std::rotate(program_.begin() + static_cast<std::ptrdiff_t>(at_), at, at + 1);
  return true;
}

/// Of an input that can be used from now on, or of an update on another row.
void RowRunner::tell_rule(const Message& message) {
  Action action;
  action.stage = message.from_stage;
  action.microbatch = message.microbatch;
  action.replica = message.replica;
  if (message.kind == MessageKind::updated) {
    action.kind = ActionKind::update;
    action.backward_to = message.from_stage;
    setup_.rule->ended(Row(message.from_stage.value), action);
    return;
  }
  action.kind = message.kind == MessageKind::activation ? ActionKind::forward  //
                                                        : ActionKind::backward;
  setup_.rule->arrived(action);
}

/// An action of this row has ended.
void RowRunner::tell_rule(const Action& ended) {
  updates_done_ += ended.kind == ActionKind::update;
  syncs_done_ += ended.kind == ActionKind::sync;
  setup_.rule->ended(setup_.row, ended);
}

}  // namespace pipewright
