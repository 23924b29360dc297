// Randomized PipeDream: stale block-SGD (arXiv 2606.03498; DESIGN.md section 4). Update k draws a
// stage, a batch and a delay per block; block j is read as it was after k - d_j updates; only the
// drawn block is updated. A "microbatch" of the schedule is an update, by its number k.
#include <algorithm>
#include <deque>
#include <set>

#include "core/schedule/rpd_draws.hpp"
#include "core/sim/row_rule.hpp"
#include "core/sim/unrolled.hpp"

namespace pipewright {
namespace {

/// Iterations overlap, at most `in_flight_max` at once; on a stage the ready action of the lowest k
/// goes first, backward before forward.
class Rpd {
 public:
  /// `only`: asked for one row alone, and told of other rows' actions only if that is the first row
  /// and they are updates.
  Rpd(const ScheduleHeader& header, std::unique_ptr<DrawSource> draws,
      std::optional<Row> only = std::nullopt)
      : header_(header),
        draws_(std::move(draws)),
        only_(only),
        stages_(static_cast<std::size_t>(header.stages)) {}

  template <class IsGiven = Everything>
  std::optional<Action> pick(Row row, const IsGiven& is_given = {}) {
    StageState& stage = at(row);
    // Updates of one block happen in the order of k.
    if (!stage.updates.empty() && stage.updates.front().has_gradient &&
        is_given(ActionKind::update, Microbatch(stage.updates.front().k))) {
      return make(ActionKind::update, row, stage.updates.front().k);
    }
    const std::optional<std::int64_t> forward = ready_forward(row, is_given);
    const auto backward =
        std::find_if(stage.gradients.begin(), stage.gradients.end(),
                     [&](std::int64_t k) { return is_given(ActionKind::backward, Microbatch(k)); });
    if (backward != stage.gradients.end() && (!forward || *backward <= *forward)) {
      return make(ActionKind::backward, row, *backward);
    }
    if (!forward) return std::nullopt;
    return make(ActionKind::forward, row, *forward);
  }

  void began(Row row, const Action& action) {
    StageState& stage = at(row);
    const std::int64_t k = action.microbatch.value;
    if (action.kind == ActionKind::forward) {
      if (row == Row(0)) {
        ++admitted_;
        ++in_flight_;
      } else {
        stage.activations.erase(k);
      }
    } else if (action.kind == ActionKind::backward) {
      stage.gradients.erase(k);
    }
  }

  void arrived(Row row, const Action& cause) {
    StageState& stage = at(row);
    (cause.kind == ActionKind::forward ? stage.activations : stage.gradients)
        .insert(cause.microbatch.value);
  }

  void ended(Row row, const Action& action) {
    StageState& stage = at(row);
    const std::int64_t k = action.microbatch.value;
    if (action.kind == ActionKind::forward && row.value + 1 == header_.stages) {
      stage.gradients.insert(k);
    } else if (action.kind == ActionKind::backward && Stage(row.value) == action.backward_to) {
      for (OwnUpdate& update : stage.updates) {
        if (update.k == k) update.has_gradient = true;
      }
    } else if (action.kind == ActionKind::update) {
      stage.updates.pop_front();
      --in_flight_;
      forget(k);
    }
    // A row that hears of no other's updates needs a draw as long as it has something to do itself.
    const bool is_last_here = action.kind == ActionKind::forward
                                  ? action.stage < action.backward_to
                                  : action.stage > action.backward_to;
    if (only_ && *only_ != Row(0) && action.kind != ActionKind::update && is_last_here) forget(k);
  }

  /// An update lets stage 0 admit another.
  bool wakes_first_row(const Action& action) const { return action.kind == ActionKind::update; }

 private:
  struct OwnUpdate {
    std::int64_t k;
    bool has_gradient;
  };
  struct StageState {
    std::set<std::int64_t> activations, gradients;  // that have come and were not used
    std::deque<OwnUpdate> updates;                  // drawn and not done, in the order of k
  };
  struct Kept {
    Draw draw;
    bool is_done = false;
  };

  StageState& at(Row row) { return stages_[static_cast<std::size_t>(row.value)]; }

  const Draw& draw(std::int64_t k) {
    while (k >= first_kept_ + static_cast<std::int64_t>(kept_.size())) {
      const std::int64_t drawn = first_kept_ + static_cast<std::int64_t>(kept_.size());
      kept_.push_back({draws_->next(), false});
      const Row updated(kept_.back().draw.stage.value);
      if (!only_ || *only_ == Row(0) || *only_ == updated) {
        at(updated).updates.push_back({drawn, false});
      }
    }
    return kept_[static_cast<std::size_t>(k - first_kept_)].draw;
  }

  void forget(std::int64_t k) {
    kept_[static_cast<std::size_t>(k - first_kept_)].is_done = true;
    while (!kept_.empty() && kept_.front().is_done) {
      kept_.pop_front();
      ++first_kept_;
    }
  }

  /// Whether every update of its block that the forward of k must see is done.
  bool sees_its_version(Row row, std::int64_t k) {
    const std::int64_t read = k - draw(k).delays[static_cast<std::size_t>(row.value)];
    const auto& updates = at(row).updates;
    return updates.empty() || updates.front().k >= read;
  }

  template <class IsGiven>
  std::optional<std::int64_t> ready_forward(Row row, const IsGiven& is_given) {
    if (row == Row(0)) {
      const bool may = admitted_ < header_.updates && in_flight_ < header_.in_flight_max &&
                       is_given(ActionKind::forward, Microbatch(admitted_)) &&
                       sees_its_version(row, admitted_);
      return may ? std::optional(admitted_) : std::nullopt;
    }
    for (const std::int64_t k : at(row).activations) {
      if (is_given(ActionKind::forward, Microbatch(k)) && sees_its_version(row, k)) return k;
    }
    return std::nullopt;
  }

  Action make(ActionKind kind, Row row, std::int64_t k) {
    const Draw& drawn = draw(k);
    Action action;
    action.kind = kind;
    action.stage = Stage(row.value);
    action.microbatch = Microbatch(k);
    action.batch = drawn.batch;
    action.backward_to = drawn.stage;
    if (kind == ActionKind::forward) {
      action.read_update = UpdateCount(k - drawn.delays[static_cast<std::size_t>(row.value)]);
    }
    return action;
  }

  ScheduleHeader header_;
  std::unique_ptr<DrawSource> draws_;
  std::optional<Row> only_;
  std::vector<StageState> stages_;
  std::int64_t admitted_ = 0;
  std::int64_t in_flight_ = 0;
  std::deque<Kept> kept_;
  std::int64_t first_kept_ = 0;
};

const Value& only_entry(const Value& one_of, std::string& kind) {
  kind = one_of.as_map().front().first;
  return one_of.as_map().front().second;
}

/// The largest delay that a read can have.
std::int64_t delay_bound(const Value& parameters) {
  const std::int64_t stages = parameters.at("stages").as_integer();
  std::string source;
  const Value& inner = only_entry(parameters.at("delays"), source);
  const Value* given = parameters.find("delay_max");
  if (source == "uniform" || source == "max") {
    if (given == nullptr)
      throw ParamError("delay_max", "must be given with `delays: " + source + "`");
    return given->as_integer();
  }
  if (given != nullptr) {
    throw ParamError("delay_max", "goes with `delays: uniform` and `delays: max` only");
  }
  if (source == "zero") return 0;
  if (source == "file") {
    return recorded_delay_max(inner.as_text(), static_cast<int>(stages),
                              parameters.at("updates").as_integer());
  }
  return 5 * stages * stages / 4 - stages;  // floor(5 S^2 / 4 - S): PipeDream with its start-up
}

ScheduleHeader header_from(const Value& parameters, std::uint64_t seed) {
  ScheduleHeader header;
  header.name = "rpd";
  header.stages = static_cast<int>(parameters.at("stages").as_integer());
  header.updates = parameters.at("updates").as_integer();
  header.microbatches = header.updates;
  header.one_block = true;
  header.delay_max = delay_bound(parameters);
  const Value* in_flight = parameters.find("in_flight_max");
  header.in_flight_max = in_flight != nullptr ? in_flight->as_integer() : header.stages;
  header.seed = seed;
  return header;
}

std::unique_ptr<DrawSource> make_random(const Value& parameters, const ScheduleHeader& header,
                                        const ScheduleContext& context, const std::string& source) {
  const auto order_of = [&](const char* what) {
    const Value* sampling = parameters.find("sampling");
    const Value* order = sampling == nullptr ? nullptr : sampling->find(what);
    return order != nullptr && order->as_text() == "cyclic" ? DrawOrder::cyclic
                                                            : DrawOrder::uniform;
  };
  const DelaySource delays = source == "max"    ? DelaySource::max
                             : source == "zero" ? DelaySource::zero
                                                : DelaySource::uniform;
  return random_draws({header.stages, context.batches > 0 ? context.batches : header.updates,
                       context.batch_order(), header.delay_max, delays, order_of("stage"),
                       order_of("batch"), header.seed});
}

std::unique_ptr<DrawSource> draws_from(const Value& parameters, const ScheduleHeader& header,
                                       const ScheduleContext& context) {
  std::string source;
  const Value& inner = only_entry(parameters.at("delays"), source);
  const Value* sampling = parameters.find("sampling");
  const auto order_of = [&](const char* what) -> std::string {
    const Value* order = sampling == nullptr ? nullptr : sampling->find(what);
    return order == nullptr ? "" : order->as_text();
  };
  const std::string stage_order = order_of("stage"), batch_order = order_of("batch");
  const bool is_recorded = source == "file" || source == "pipedream";
  const bool is_pipedream_order = stage_order == "pipedream" || batch_order == "pipedream";
  if (source == "file" && sampling != nullptr) {
    throw ParamError("sampling", "the file of `delays` gives stages and batches too");
  }
  if (source == "pipedream" || (is_pipedream_order && !is_recorded)) {
    // All in PipeDream's order; what is drawn otherwise is drawn over it.
    const bool is_source = source == "pipedream";
    return mixed_draws(pipedream_draws(header.stages, header.updates, context.batch_order()),
                       make_random(parameters, header, context, source),
                       {is_source, stage_order.empty() ? is_source : stage_order == "pipedream",
                        batch_order.empty() ? is_source : batch_order == "pipedream"});
  }
  if (source == "file") {
    if (context.shuffle) {
      throw ParamError("delays", "the file gives every batch; leave out `shuffle`");
    }
    return recorded_draws(inner.as_text(), header.stages, header.updates);
  }
  return make_random(parameters, header, context, source);
}

std::unique_ptr<ScheduleSource> make(const Value& parameters, const ScheduleContext& context) {
  const ScheduleHeader header = header_from(parameters, context.seed);
  return std::make_unique<UnrolledSource<Rpd>>(
      header, Rpd(header, draws_from(parameters, header, context)), context);
}

std::unique_ptr<RowRule> make_rule(const Value& parameters, const ScheduleContext& context,
                                   Row row) {
  const ScheduleHeader header = header_from(parameters, context.seed);
  return std::make_unique<PolicyRule<Rpd>>(
      Rpd(header, draws_from(parameters, header, context), row), row);
}

std::vector<KnownResult> known_results(const Value& parameters, const ScheduleContext& context) {
  const ScheduleHeader header = header_from(parameters, context.seed);
  std::string source;
  only_entry(parameters.at("delays"), source);
  const bool is_pipedream = source == "pipedream";
  return {KnownResult::of(
      "largest delay, updates", is_pipedream ? "at most floor(5 S^2 / 4 - S)" : "at most delay_max",
      "delay_updates.max", static_cast<double>(header.delay_max), KnownResult::Relation::at_most)};
}

ParamSpec draw_order_parameter(const char* name, const char* help) {
  return ParamSpec::text_of(name, help, {"uniform", "cyclic", "pipedream"});
}

const Registration<ScheduleKind> registration{
    {.kind = "rpd",
     .summary =
         "Randomized PipeDream: each update draws a block, a batch and how old its reads are.",
     .parameters =
         {stages_parameter(),
          ParamSpec::integer_of("updates", "Block updates in all.")
              .at_least(1)
              .at_most(1e15)
              .needed(),
          ParamSpec::integer_of("delay_max", "Largest delay delta of `uniform` and `max`.",
                                "updates")
              .at_least(0)
              .at_most(1e9),
          ParamSpec::one_of(
              "delays", "How many updates each read of a block lies back.",
              {ParamSpec::group_of("uniform", "Drawn from 0 to min(delay_max, k).", {}),
               ParamSpec::group_of("max", "Always min(delay_max, k).", {}),
               ParamSpec::group_of("zero", "Never stale: plain randomized block SGD.", {}),
               ParamSpec::group_of("pipedream", "The exact delays of PipeDream's timeline.", {}),
               ParamSpec::path_of("file",
                                  "Recorded: CSV with a first line of names and the columns "
                                  "iteration, stage, batch, and the delay of each block.")})
              .or_default("uniform"),
          ParamSpec::group_of(
              "sampling", "How block and batch of an update are chosen.",
              {draw_order_parameter(
                   "stage", "Of the block; by default uniform (pipedream with its delays)."),
               draw_order_parameter(
                   "batch", "Of the batch; by default uniform (pipedream with its delays).")}),
          ParamSpec::integer_of("in_flight_max",
                                "Updates under way at once; by default the number of stages.",
                                "updates")
              .at_least(1),
          order_parameter()},
     .header = header_from,
     .make = make,
     .known = known_results}};
const Registration<RowRuleKind> rule{{.kind = "rpd", .make = make_rule}};

}  // namespace
}  // namespace pipewright
