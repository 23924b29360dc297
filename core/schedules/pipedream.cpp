// PipeDream: 1F1B with weight stashing (Narayanan et al., SOSP 2019). `greedy`, as in the paper's
// time model (DESIGN.md section 4), begins whatever is ready by one rule; `strict` follows fixed
// counts.
#include <cmath>

#include "core/schedule/strict.hpp"
#include "core/sim/greedy_rows.hpp"
#include "core/sim/unrolled.hpp"
#include "core/theory/formulas.hpp"

namespace pipewright {
namespace {

/// Stage 0 admits a microbatch while fewer than `cap` are inside.
class Greedy {
 public:
  Greedy(const ScheduleHeader& header, std::int64_t cap, BatchOrder batches)
      : rows_(header, std::move(batches)), microbatches_(header.microbatches), cap_(cap) {}

  template <class IsGiven = Everything>
  std::optional<Action> pick(Row row, const IsGiven& is_given = {}) {
    const auto admit = [&]() -> std::optional<Microbatch> {
      if (admitted_ == microbatches_ || admitted_ - back_ >= cap_) return std::nullopt;
      return Microbatch(admitted_);
    };
    return rows_.pick(row, admit, is_given);
  }
  void arrived(Row row, const Action& cause) { rows_.arrived(row, cause); }
  void began(Row row, const Action& action) {
    admitted_ += row == Row(0) && action.kind == ActionKind::forward;
  }
  void ended(Row row, const Action& action) {
    rows_.ended(row, action);
    back_ += row == Row(0) && action.kind == ActionKind::backward;
  }

 private:
  GreedyRows rows_;
  std::int64_t microbatches_;
  std::int64_t cap_;
  std::int64_t admitted_ = 0;
  std::int64_t back_ = 0;
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

std::vector<std::int64_t> warm_up_from(const Value* given, int stages) {
  std::vector<std::int64_t> counts = default_warm_up(stages);
  if (given == nullptr) return counts;
  if (given->is_number() && given->as_real() >= 0) {
    for (auto& count : counts) {
      count = std::llround(std::ceil(given->as_real() * static_cast<double>(count) - 1e-9));
    }
    return counts;
  }
  static constexpr const char* wanted =
      "expected a factor of at least 0 (1.5) or a list of whole numbers, one per stage";
  if (!given->is_list()) throw ParamError("warm_up", wanted);
  counts.clear();
  for (const Value& count : given->as_list()) {
    if (!count.is_integer() || count.as_integer() < 0) throw ParamError("warm_up", wanted);
    counts.push_back(count.as_integer());
  }
  return counts;
}

Greedy greedy_from(const Value& parameters, const ScheduleHeader& header,
                   const ScheduleContext& context) {
  const Value* cap = parameters.find("in_flight_max");
  return {header, cap != nullptr ? cap->as_integer() : header.stages, context.batch_order()};
}

std::unique_ptr<ScheduleSource> make(const Value& parameters, const ScheduleContext& context) {
  const ScheduleHeader header = header_from(parameters, context.seed);
  const Value* cap = parameters.find("in_flight_max");
  const Value* warm_up = parameters.find("warm_up");
  if (parameters.at("order").as_text() == "strict") {
    if (cap != nullptr) {
      throw ParamError("in_flight_max",
                       "goes with `order: greedy`; a strict order is set by `warm_up`");
    }
    return std::make_unique<StrictSource>(
        header, StrictCounts{warm_up_from(warm_up, header.stages), header.microbatches, false},
        context);
  }
  if (warm_up != nullptr) {
    throw ParamError("warm_up",
                     "goes with `order: strict`; a greedy order is set by `in_flight_max`");
  }
  return std::make_unique<UnrolledSource<Greedy>>(header, greedy_from(parameters, header, context),
                                                  context);
}

std::unique_ptr<RowRule> make_rule(const Value& parameters, const ScheduleContext& context,
                                   Row row) {
  const ScheduleHeader header = header_from(parameters, context.seed);
  return std::make_unique<PolicyRule<Greedy>>(greedy_from(parameters, header, context), row);
}

using KnownResults = std::vector<KnownResult>;

KnownResult per_stage(std::string what, std::string formula, std::string metric, int stages,
                      const std::function<std::int64_t(int)>& expected) {
  KnownResult result{std::move(what), std::move(formula), "per_stage." + std::move(metric), {}};
  for (int s = 0; s < stages; ++s) result.expected.push_back(static_cast<double>(expected(s)));
  return result;
}

/// In the paper's time model only.
KnownResults known_of_greedy(const ScheduleHeader& header, std::int64_t cap) {
  const int stages = header.stages;
  const std::int64_t n = header.microbatches;
  KnownResults known;
  if (cap >= stages) {
    known.push_back(KnownResult::of("makespan, ticks", "2 (N + S - 1)", "makespan_ticks",
                                    static_cast<double>(theory::pipeline_makespan(n, stages))));
  }
  // A stash is at its peak once the in-flight cap has been reached.
  if (n >= 2 * stages) {
    known.push_back(per_stage("peak stash of stage s, microbatches", "min(cap, 2 (S - s) - 1)",
                              "stash_microbatches_max", stages,
                              [&](int s) { return theory::greedy_stash_max(stages, s, cap); }));
  }
  if (cap != stages || n < 10 * stages) return known;
  const auto delay_max = static_cast<double>(theory::pipedream_delay_max(stages));
  const auto steady = static_cast<double>(theory::pipedream_delay_max_steady(stages));
  known.push_back(KnownResult::of("largest delay of the steady phase, updates", "floor(S^2 - S/2)",
                                  "delay_updates.steady.max", steady));
  known.push_back(KnownResult::of("largest delay of the start-up, updates", "floor(5 S^2 / 4 - S)",
                                  "delay_updates.start_up.max", delay_max));
  known.push_back(per_stage("steady staleness of stage s, versions", "S - 1 - s",
                            "staleness_versions.steady.mean", stages,
                            [&](int s) { return theory::pipedream_staleness(stages, s); }));
  return known;
}

/// The order is fixed, so its staleness does not depend on times.
KnownResults known_of_strict(const ScheduleHeader& header, const std::vector<std::int64_t>& warm_up,
                             const ScheduleContext& context) {
  const int stages = header.stages;
  KnownResults known;
  if (header.microbatches < 10 * (warm_up.front() + stages)) return known;
  const auto of_stage = [&](int s) { return warm_up[static_cast<std::size_t>(s)]; };
  known.push_back(per_stage("steady staleness of stage s with W_s warm-up forwards, versions",
                            "W_s", "staleness_versions.steady.mean", stages, of_stage));
  known.push_back(per_stage("peak stash of stage s, microbatches", "W_s + 1",
                            "stash_microbatches_max", stages,
                            [&](int s) { return of_stage(s) + 1; }));
  const auto forward = context.cost.uniform(ActionKind::forward);
  const auto backward = context.cost.uniform(ActionKind::backward);
  const auto latency = context.link.uniform();
  if (!forward || !backward || !latency || context.cost.uniform(ActionKind::update) != Tick(0)) {
    return known;
  }
  const std::int64_t busy = (*forward + *backward).value;
  bool hides = true;
  for (int s = 0; s < stages; ++s) {
    hides = hides && theory::hiding_warm_up(stages, s, busy, latency->value) == of_stage(s);
  }
  if (hides) {
    known.push_back(KnownResult::of("ticks per microbatch, the latency hidden by the warm-up",
                                    "tF + tB", "period_ticks", static_cast<double>(busy)));
  } else if (warm_up == default_warm_up(stages)) {
    known.push_back(KnownResult::of("ticks per microbatch with latency c per hop",
                                    "(tF + tB) + 2 (S - 1) c / S", "period_ticks",
                                    theory::strict_period(stages, busy, latency->value)));
  }
  return known;
}

KnownResults known_results(const Value& parameters, const ScheduleContext& context) {
  const ScheduleHeader header = header_from(parameters, context.seed);
  if (parameters.at("order").as_text() == "strict") {
    return known_of_strict(header, warm_up_from(parameters.find("warm_up"), header.stages),
                           context);
  }
  if (!context.cost.is_unit() || context.link.uniform() != Tick(0)) return {};
  const Value* cap = parameters.find("in_flight_max");
  return known_of_greedy(header, cap != nullptr ? cap->as_integer() : header.stages);
}

const Registration<ScheduleKind> registration{
    {.kind = "pipedream",
     .summary =
         "PipeDream: asynchronous 1F1B with weight stashing, an update after every backward.",
     .parameters =
         {stages_parameter(), microbatches_parameter(),
          ParamSpec::integer_of("in_flight_max",
                                "In-flight cap: microbatches admitted at stage 0 and not yet back "
                                "there (PipeDream's NOAM); by default the number of stages.",
                                "microbatches")
              .at_least(1),
          ParamSpec::text_of("order",
                             "greedy: a stage runs what is ready in the plan, by the 1F1B rule; "
                             "strict: fixed warm-up counts, then one F and one B in turn; online: "
                             "the greedy rule, decided in the run by what has arrived (clock: "
                             "real).",
                             {"greedy", "strict", "online"})
              .or_default("greedy"),
          ParamSpec::any_of("warm_up",
                            "Of a strict order: forwards before a stage's first F-B pair; a list "
                            "with one count per stage, or a factor of the default S-1-s.")},
     .header = header_from,
     .make = make,
     .known = known_results}};
const Registration<RowRuleKind> rule{{.kind = "pipedream", .make = make_rule}};

}  // namespace
}  // namespace pipewright
