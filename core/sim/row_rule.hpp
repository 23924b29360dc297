// How a row decides by itself what it does next: with `order: online`, on the real clock. The rule
// is the Policy (event_loop.hpp) that a schedule's plan is unrolled from, asked for one row about
// what has come there. A schedule that can be followed online registers a RowRuleKind beside its
// ScheduleKind, in the same file.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/base/registry.hpp"
#include "core/schedule/kind.hpp"

namespace pipewright {

/// Which actions a Policy may pick. A plan picks among all.
struct Everything {
  bool operator()(ActionKind, Microbatch) const { return true; }
};

class RowRule {
 public:
  /// Tells whether the row has been handed out an action and has not begun it.
  using IsGiven = std::function<bool(ActionKind, Microbatch)>;

  virtual ~RowRule() = default;
  /// What the row begins now, of what it has been given.
  virtual std::optional<Action> pick(const IsGiven& is_given) = 0;
  /// The output of `cause` can be used from now on.
  virtual void arrived(const Action& cause) = 0;
  /// `row` has finished `action`. It is this row; of a schedule with an in-flight cap row 0 is told
  /// of the updates of all rows.
  virtual void ended(Row row, const Action& action) = 0;
};

template <class Policy>
class PolicyRule : public RowRule {
 public:
  PolicyRule(Policy policy, Row row) : policy_(std::move(policy)), row_(row) {}

  std::optional<Action> pick(const IsGiven& is_given) override {
    auto action = policy_.pick(row_, is_given);
    if (action) policy_.began(row_, *action);
    return action;
  }
  void arrived(const Action& cause) override { policy_.arrived(row_, cause); }
  void ended(Row row, const Action& action) override { policy_.ended(row, action); }

 private:
  Policy policy_;
  Row row_;
};

struct RowRuleKind {
  std::string kind;  // of the schedule
  std::function<std::unique_ptr<RowRule>(const Value& parameters, const ScheduleContext& context,
                                         Row row)>
      make;
};

using RowRuleRegistry = Registry<RowRuleKind>;

/// Of schedules whose plan has no other choice.
inline ParamSpec order_parameter() {
  return ParamSpec::text_of("order",
                            "planned: a stage follows the plan; online: it decides in the run, by "
                            "the same rule, by what has arrived (clock: real).",
                            {"planned", "online"})
      .or_default("planned");
}

}  // namespace pipewright
