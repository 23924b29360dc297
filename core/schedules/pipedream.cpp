// PipeDream: 1F1B with weight stashing (Narayanan et al., SOSP 2019), in the greedy form of the
// paper's time model (DESIGN.md section 4): an idle stage begins whatever is ready by one rule.
#include "core/schedule/kind.hpp"
#include "core/sim/pending.hpp"
#include "core/sim/unrolled.hpp"

namespace pipewright {
namespace {

/// Stage 0 admits a microbatch while fewer than `cap` are inside. A stage that could run both F and
/// B prefers B until its first B, then alternates; every B is followed by its block's update.
class Greedy {
 public:
  Greedy(int stages, std::int64_t microbatches, std::int64_t cap)
      : microbatches_(microbatches), cap_(cap), stages_(static_cast<std::size_t>(stages)) {}

  std::optional<Action> pick(Row row) {
    StageState& stage = stages_[static_cast<std::size_t>(row.value)];
    if (stage.to_update) {
      const Microbatch m = *stage.to_update;
      stage.to_update.reset();
      return make(ActionKind::update, row, m);
    }
    const bool can_forward = row.value == 0 ? admitted_ < microbatches_ && admitted_ - back_ < cap_
                                            : !stage.activations.empty();
    const bool can_backward = !stage.gradients.empty();
    if (!can_forward && !can_backward) return std::nullopt;
    // Before the first B the last action was an F, so "not the last one" prefers B as the rule
    // asks.
    if (can_backward && (!can_forward || stage.last_was_forward)) {
      const Microbatch m = stage.gradients.front();
      stage.gradients.pop();
      stage.last_was_forward = false;
      return make(ActionKind::backward, row, m);
    }
    stage.last_was_forward = true;
    if (row.value == 0) return make(ActionKind::forward, row, Microbatch(admitted_++));
    const Microbatch m = stage.activations.front();
    stage.activations.pop();
    return make(ActionKind::forward, row, m);
  }

  void arrived(Row row, const Action& cause) {
    StageState& stage = stages_[static_cast<std::size_t>(row.value)];
    (cause.kind == ActionKind::forward ? stage.activations : stage.gradients).add(cause.microbatch);
  }

  void ended(Row row, const Action& action) {
    StageState& stage = stages_[static_cast<std::size_t>(row.value)];
    const bool is_last = static_cast<std::size_t>(row.value) + 1 == stages_.size();
    if (action.kind == ActionKind::forward && is_last) stage.gradients.add(action.microbatch);
    if (action.kind == ActionKind::backward) {
      stage.to_update = action.microbatch;
      if (row.value == 0) ++back_;
    }
  }

 private:
  struct StageState {
    bool last_was_forward = true;
    std::optional<Microbatch> to_update;
    PendingInputs activations;
    PendingInputs gradients;
  };

  static Action make(ActionKind kind, Row row, Microbatch m) {
    Action action;
    action.kind = kind;
    action.stage = Stage(row.value);
    action.microbatch = m;
    return action;
  }

  std::int64_t microbatches_;
  std::int64_t cap_;
  std::int64_t admitted_ = 0;
  std::int64_t back_ = 0;
  std::vector<StageState> stages_;
};

ScheduleHeader header_from(const Value& parameters, std::uint64_t seed) {
  ScheduleHeader header;
  header.name = "pipedream";
  header.stages = static_cast<int>(parameters.at("stages").as_integer());
  header.microbatches = parameters.at("microbatches").as_integer();
  header.updates = header.microbatches * header.stages;
  header.seed = seed;
  return header;
}

std::unique_ptr<ScheduleSource> make(const Value& parameters, const ScheduleContext& context) {
  const ScheduleHeader header = header_from(parameters, context.seed);
  const Value* cap = parameters.find("in_flight_max");
  return std::make_unique<UnrolledSource<Greedy>>(
      header,
      Greedy(header.stages, header.microbatches,
             cap != nullptr ? cap->as_integer() : header.stages),
      context);
}

const Registration<ScheduleKind> registration{
    {.kind = "pipedream",
     .summary =
         "PipeDream: asynchronous 1F1B with weight stashing, an update after every backward.",
     .parameters = {stages_parameter(), microbatches_parameter(),
                    ParamSpec::integer_of(
                        "in_flight_max",
                        "In-flight cap: microbatches admitted at stage 0 and not "
                        "yet back there (PipeDream's NOAM); by default the number "
                        "of stages.",
                        "microbatches")
                        .at_least(1)},
     .header = header_from,
     .make = make}};

}  // namespace
}  // namespace pipewright
