// A schedule that comes out of unrolling a rule: the actions that a Policy (event_loop.hpp) picks
// under a cost and link model, row by row.
#pragma once

#include <memory>
#include <vector>

#include "core/base/fifo.hpp"
#include "core/schedule/kind.hpp"
#include "core/sim/event_loop.hpp"

namespace pipewright {

template <class Policy>
class UnrolledSource : public ScheduleSource {
 public:
  UnrolledSource(ScheduleHeader header, Policy policy, const ScheduleContext& context)
      : header_(std::move(header)),
        policy_(std::move(policy)),
        loop_(header_, context.cost, context.link, policy_),
        made_(static_cast<std::size_t>(header_.rows())) {}
  // The loop refers to the policy.
  UnrolledSource(const UnrolledSource&) = delete;
  UnrolledSource& operator=(const UnrolledSource&) = delete;

  const ScheduleHeader& header() const override { return header_; }

  std::optional<Action> next(Row row) override {
    auto& mine = made_[static_cast<std::size_t>(row.value)];
    while (mine.empty()) {
      const auto entry = loop_.next();
      if (!entry) return std::nullopt;
      made_[static_cast<std::size_t>(entry->row.value)].push_back(entry->action);
    }
    const Action action = mine.front();
    mine.pop_front();
    return action;
  }

 private:
  ScheduleHeader header_;
  Policy policy_;
  EventLoop<Policy> loop_;
  std::vector<Fifo<Action>> made_;
};

}  // namespace pipewright
