#include "core/sim/timeline.hpp"

#include "core/base/error.hpp"
#include "core/base/fifo.hpp"
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
    Action& action = *state.current;
    const bool is_capped =
        header().in_flight_max > 0 && row == Row(0) && action.kind == ActionKind::forward;
    if (is_capped && begun_ >= header().in_flight_max) {
      if (ended_.empty()) return std::nullopt;
      action.admitted_by = ended_.front();
    }
    if (action.kind == ActionKind::forward && action.stage.value > 0 &&
        !state.activations.take(action.microbatch)) {
      return std::nullopt;
    }
    if (action.kind == ActionKind::backward && action.stage.value + 1 < header().stages &&
        !state.gradients.take(action.microbatch)) {
      return std::nullopt;
    }
    if (is_capped && begun_++ >= header().in_flight_max) ended_.pop_front();
    return std::exchange(state.current, std::nullopt);
  }

  void arrived(Row row, const Action& cause) {
    RowState& state = at(row);
    (cause.kind == ActionKind::forward ? state.activations : state.gradients).add(cause.microbatch);
  }

  void began(Row, const Action&) {}
  void ended(Row row, const Action& action) {
    // Row 0 knows of its own.
    if (wakes_first_row(action))
      ended_.push_back(row == Row(0) ? Microbatch(-1) : action.microbatch);
  }
  /// Under an in-flight cap an update lets row 0 admit another microbatch.
  bool wakes_first_row(const Action& action) const {
    return source_->header().in_flight_max > 0 && action.kind == ActionKind::update;
  }

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
  // Of a schedule with an in-flight cap: the forwards that row 0 has begun, and the updates that
  // have ended and have not let another in yet.
  std::int64_t begun_ = 0;
  Fifo<Microbatch> ended_;
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
