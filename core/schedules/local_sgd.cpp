// LocalSGD over a pipeline (DESIGN.md section 4): R replicas take turns in it; after H local steps
// each, a round ends and every block is averaged over the replicas. With an outer optimizer it is
// DiLoCo (Douillard et al., arXiv 2311.08105).
#include "core/schedule/sync_parameters.hpp"
#include "core/sim/greedy_rows.hpp"
#include "core/sim/unrolled.hpp"
#include "core/theory/formulas.hpp"

namespace pipewright {
namespace {

/// Microbatch i belongs to replica i mod R. A replica has one microbatch inside at a time; a
/// round's first forward waits until the round before has fully come back, which its SYNC sees to.
class LocalSgd {
 public:
  LocalSgd(const ScheduleHeader& header, BatchOrder batches)
      : header_(header),
        rows_(header, std::move(batches)),
        states_(static_cast<std::size_t>(header.rows())),
        is_inside_(static_cast<std::size_t>(header.replicas)) {
    for (int r = 0; r < header.rows(); ++r) {
      states_[static_cast<std::size_t>(r)].next =
          is_spread() ? header.first_replica_of(Row(r)).value : 0;
    }
    updates_per_round_ = is_spread() ? header.local_steps : header.local_steps * header.replicas;
    whole_rounds_ = header.microbatches / round_size();
  }

  template <class IsGiven = Everything>
  std::optional<Action> pick(Row row, const IsGiven& is_given = {}) {
    RowState& state = at(row);
    if (state.updates == updates_per_round_ && state.round < whole_rounds_) {
      if (!is_given(ActionKind::sync, Microbatch(state.round))) return std::nullopt;
      state.updates = 0;
      Action sync;
      sync.kind = ActionKind::sync;
      sync.stage = header_.stage_of(row);
      sync.microbatch = Microbatch(state.round++);
      sync.replica = is_spread() ? header_.first_replica_of(row) : Replica(0);
      return sync;
    }
    auto action = rows_.pick(
        row, [&] { return admissible(state); }, is_given);
    if (action) action->replica = replica_of(action->microbatch);
    return action;
  }

  void arrived(Row row, const Action& cause) { rows_.arrived(row, cause); }

  void began(Row row, const Action& action) {
    if (action.kind == ActionKind::forward && rows_.is_first(row)) {
      is_inside_[static_cast<std::size_t>(action.replica.value)] = true;
      at(row).next += is_spread() ? header_.replicas : 1;
    }
  }

  void ended(Row row, const Action& action) {
    if (action.kind == ActionKind::sync) return;
    rows_.ended(row, action);
    if (action.kind == ActionKind::update) ++at(row).updates;
    if (action.kind == ActionKind::backward && rows_.is_first(row)) {
      is_inside_[static_cast<std::size_t>(action.replica.value)] = false;
    }
  }

 private:
  struct RowState {
    std::int64_t next = 0;     // microbatch that a first stage admits next
    std::int64_t updates = 0;  // in this round
    std::int64_t round = 0;
  };

  RowState& at(Row row) { return states_[static_cast<std::size_t>(row.value)]; }
  bool is_spread() const { return header_.placement == Placement::spread; }
  std::int64_t round_size() const { return header_.local_steps * header_.replicas; }
  Replica replica_of(Microbatch m) const {
    return Replica(static_cast<std::int32_t>(m.value % header_.replicas));
  }

  std::optional<Microbatch> admissible(const RowState& state) const {
    const Microbatch m(state.next);
    const bool is_its_turn =
        m.value < header_.microbatches && m.value / round_size() == state.round;
    if (!is_its_turn || is_inside_[static_cast<std::size_t>(replica_of(m).value)]) {
      return std::nullopt;
    }
    return m;
  }

  ScheduleHeader header_;
  GreedyRows rows_;
  std::vector<RowState> states_;
  std::vector<bool> is_inside_;  // per replica
  std::int64_t updates_per_round_ = 0;
  std::int64_t whole_rounds_ = 0;
};

ScheduleHeader header_from(const Value& parameters, std::uint64_t seed) {
  ScheduleHeader header;
  header.name = "local_sgd";
  header.stages = static_cast<int>(parameters.at("stages").as_integer());
  header.replicas = static_cast<int>(parameters.at("replicas").as_integer());
  header.local_steps = parameters.at("local_steps").as_integer();
  header.microbatches = parameters.at("microbatches").as_integer();
  header.updates = header.microbatches * header.stages;
  header.placement =
      parameters.at("placement").as_text() == "spread" ? Placement::spread : Placement::colocated;
  header.seed = seed;
  return header;
}

std::unique_ptr<ScheduleSource> make(const Value& parameters, const ScheduleContext& context) {
  const ScheduleHeader header = header_from(parameters, context.seed);
  return std::make_unique<UnrolledSource<LocalSgd>>(header, LocalSgd(header, context.batch_order()),
                                                    context);
}

/// The paper's time model, in which a sync is free.
std::vector<KnownResult> known_results(const Value& parameters, const ScheduleContext& context) {
  const ScheduleHeader header = header_from(parameters, context.seed);
  const bool is_free = parameters.at("sync").as_text() == "free";
  if (!is_free || !context.cost.is_unit() || context.link.uniform() != Tick(0)) return {};
  const bool is_spread = header.placement == Placement::spread;
  const std::int64_t sharing = is_spread ? 1 : header.replicas;
  return {KnownResult::of(
      is_spread ? "ticks per round, each replica with stages of its own" : "ticks per round",
      is_spread ? "2 S H" : "2 [max(R, S) (H - 1) + R + S - 1]", "round_ticks",
      static_cast<double>(theory::local_sgd_round(header.stages, sharing, header.local_steps)))};
}

std::unique_ptr<RowRule> make_rule(const Value& parameters, const ScheduleContext& context,
                                   Row row) {
  const ScheduleHeader header = header_from(parameters, context.seed);
  return std::make_unique<PolicyRule<LocalSgd>>(LocalSgd(header, context.batch_order()), row);
}

const Registration<ScheduleKind> registration{
    {.kind = "local_sgd",
     .summary = "LocalSGD: replicas share the pipeline and are averaged after some local steps.",
     .parameters = {stages_parameter(),
                    ParamSpec::integer_of("replicas", "Copies of the model.")
                        .at_least(1)
                        .at_most(65536)
                        .needed(),
                    ParamSpec::integer_of("local_steps", "Updates of a replica between two syncs.")
                        .at_least(1)
                        .at_most(1e12)
                        .needed(),
                    microbatches_parameter(),
                    ParamSpec::text_of(
                        "placement",
                        "colocated: a stage's rank holds that block for all replicas; spread: "
                        "each replica has stages of its own.",
                        {"colocated", "spread"})
                        .or_default("colocated"),
                    order_parameter(), sync_parameter(), outer_parameter()},
     .header = header_from,
     .make = make,
     .known = known_results}};
const Registration<RowRuleKind> rule{{.kind = "local_sgd", .make = make_rule}};

}  // namespace
}  // namespace pipewright
