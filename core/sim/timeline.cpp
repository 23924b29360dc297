#include "core/sim/timeline.hpp"

#include "core/base/error.hpp"
#include "core/sim/event_loop.hpp"
#include "core/sim/pending.hpp"

namespace pipewright {

namespace {

/// Each row follows its list.
class FixedOrder {
 public:
  explicit FixedOrder(std::unique_ptr<ScheduleSource> source)
      : source_(std::move(source)), rows_(static_cast<std::size_t>(source_->header().rows())) {}

  const ScheduleHeader& header() const { return source_->header(); }

  std::optional<Action> pick(Row row) {
    RowState& state = at(row);
    if (!look(row)) return std::nullopt;
    const Action& action = *state.current;
    if (action.kind == ActionKind::forward && action.stage.value > 0 &&
        !state.activations.take(action.microbatch)) {
      return std::nullopt;
    }
    if (action.kind == ActionKind::backward && action.stage.value + 1 < header().stages &&
        !state.gradients.take(action.microbatch)) {
      return std::nullopt;
    }
    return std::exchange(state.current, std::nullopt);
  }

  void arrived(Row row, const Action& cause) {
    RowState& state = at(row);
    (cause.kind == ActionKind::forward ? state.activations : state.gradients).add(cause.microbatch);
  }

  void began(Row, const Action&) {}
  void ended(Row, const Action&) {}

  /// Throws when a row has actions left: nothing is under way, so they wait for ever.
  void check_finished() {
    std::string waiting;
    for (std::int32_t r = 0; r < header().rows(); ++r) {
      if (!look(Row(r))) continue;
      waiting += "\n  row " + std::to_string(r) + " waits at " +
                 at(Row(r)).current->label(header().replicas > 1);
    }
    if (!waiting.empty()) throw ConfigError("the schedule cannot go on:" + waiting);
  }

 private:
  struct RowState {
    std::optional<Action> current;
    bool ended = false;
    PendingInputs activations;
    PendingInputs gradients;
  };

  RowState& at(Row row) { return rows_[static_cast<std::size_t>(row.value)]; }

  /// Whether the row has a next action; it is then in `current`.
  bool look(Row row) {
    RowState& state = at(row);
    if (!state.current && !state.ended) {
      state.current = source_->next(row);
      state.ended = !state.current;
    }
    return state.current.has_value();
  }

  std::unique_ptr<ScheduleSource> source_;
  std::vector<RowState> rows_;
};

}  // namespace

class Simulator::Impl {
 public:
  Impl(std::unique_ptr<ScheduleSource> source, CostModel cost, LinkModel link)
      : order(std::move(source)), loop(order.header(), std::move(cost), std::move(link), order) {}

  FixedOrder order;
  EventLoop<FixedOrder> loop;
};

Simulator::Simulator(std::unique_ptr<ScheduleSource> source, CostModel cost, LinkModel link)
    : impl_(std::make_unique<Impl>(std::move(source), std::move(cost), std::move(link))) {}
Simulator::~Simulator() = default;
Simulator::Simulator(Simulator&&) noexcept = default;
Simulator& Simulator::operator=(Simulator&&) noexcept = default;

const ScheduleHeader& Simulator::header() const {
  return impl_->order.header();
}

std::optional<TimelineEntry> Simulator::next() {
  auto entry = impl_->loop.next();
  if (!entry) impl_->order.check_finished();
  return entry;
}

Timeline simulate(std::unique_ptr<ScheduleSource> source, const CostModel& cost,
                  const LinkModel& link) {
  Simulator simulator(std::move(source), cost, link);
  Timeline timeline{simulator.header(), {}};
  while (const auto entry = simulator.next()) timeline.entries.push_back(*entry);
  return timeline;
}

Timeline simulate(const Schedule& schedule, const CostModel& cost, const LinkModel& link) {
  return simulate(std::make_unique<HeldSchedule>(schedule), cost, link);
}

}  // namespace pipewright
