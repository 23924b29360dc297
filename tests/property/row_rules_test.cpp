// `order: online` asks a schedule's rule for one row at a time. Asked for all rows, each with what
// it alone can know, it gives the plan: the rows decide by the planner's rule.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "core/sim/event_loop.hpp"
#include "core/sim/row_rule.hpp"
#include "core/sim/unrolled.hpp"
#include "core/train/job.hpp"
#include "tests/support/schedule_cases.hpp"

namespace pipewright {
namespace {

/// A Policy of one rule per row.
class RowByRow {
 public:
  RowByRow(std::vector<std::unique_ptr<RowRule>> rules, bool is_capped)
      : rules_(std::move(rules)), is_capped_(is_capped) {}

  std::optional<Action> pick(Row row) { return rule(row).pick(Everything()); }
  void began(Row, const Action&) {}
  void arrived(Row row, const Action& cause) { rule(row).arrived(cause); }
  void ended(Row row, const Action& action) {
    rule(row).ended(row, action);
    if (row != Row(0) && wakes_first_row(action)) rule(Row(0)).ended(row, action);
  }
  bool wakes_first_row(const Action& action) const {
    return is_capped_ && action.kind == ActionKind::update;
  }

 private:
  RowRule& rule(Row row) { return *rules_[static_cast<std::size_t>(row.value)]; }
  std::vector<std::unique_ptr<RowRule>> rules_;
  bool is_capped_;  // header.in_flight_max
};

Value checked(const ScheduleCase& one) {
  return check_params(
      ParamSpec::group_of(one.kind, "", ScheduleRegistry::instance().at(one.kind).parameters),
      one.parameters, one.kind);
}

TEST(RowRules, AskedRowByRowTheyGiveThePlan) {
  const std::vector<std::pair<CostModel, LinkModel>> models{
      {CostModel(), LinkModel()},
      {CostModel(Tick(2), Tick(3), Tick(1)), LinkModel(Tick(4))},
      {CostModel(Tick(5), Tick(1)), LinkModel(Tick(1))}};
  for (const RowRuleKind& kind : RowRuleRegistry::instance().all()) {
    const ScheduleKind& schedule = ScheduleRegistry::instance().at(kind.kind);
    for (const ScheduleCase& one : cases_of(kind.kind)) {
      const Value parameters = checked(one);
      if (parameters.at("order").as_text() == "strict") continue;
      for (const auto& [cost, link] : models) {
        const ScheduleContext context{cost, link, 3, 12};
        const ScheduleHeader header = schedule.header(parameters, 3);
        std::vector<std::unique_ptr<RowRule>> rules;
        for (int r = 0; r < header.rows(); ++r) {
          rules.push_back(kind.make(parameters, context, Row(r)));
        }
        UnrolledSource<RowByRow> rows(header, RowByRow(std::move(rules), header.in_flight_max > 0),
                                      context);
        const Schedule plan = collect(*schedule.make(parameters, context));
        EXPECT_EQ(collect(rows), plan) << name_of(one);
      }
    }
  }
}

// Of what has not been handed out nothing is picked, and the rest of the rule stays as it is.
TEST(RowRules, PickOnlyWhatTheRowWasGiven) {
  for (const RowRuleKind& kind : RowRuleRegistry::instance().all()) {
    const ScheduleCase one = cases_of(kind.kind).back();
    const CostModel cost;
    const LinkModel link;
    const auto rule = kind.make(checked(one), {cost, link, 0, 12}, Row(0));
    EXPECT_FALSE(rule->pick([](ActionKind, Microbatch) { return false; })) << kind.kind;
    const auto picked = rule->pick(Everything());
    ASSERT_TRUE(picked) << kind.kind;
    EXPECT_EQ(picked->label(), "F0") << kind.kind;
  }
}

TEST(RowRules, OnlineIsRefusedOnTheVirtualClock) {
  for (const RowRuleKind& kind : RowRuleRegistry::instance().all()) {
    Value job = job_with(cases_of(kind.kind).front());
    set_path(job, "schedule." + kind.kind + ".order", "online");
    try {
      check_job(job);
      ADD_FAILURE() << kind.kind << " was taken";
    } catch (const ParamError& error) {
      EXPECT_EQ(error.path(), "schedule." + kind.kind + ".order");
    }
    job.set("clock", "real");
    set_path(job, "observe", Value::map());
    EXPECT_NO_THROW(check_job(job)) << kind.kind;
  }
}

}  // namespace
}  // namespace pipewright
