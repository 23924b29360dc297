#include "core/sim/cost.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace pipewright {

Tick tick_from(const Value& time) {
  if (time.is_integer()) return Tick(time.as_integer());
  const auto nanoseconds = parse_duration_ns(time.as_text());
  PW_CHECK(nanoseconds.has_value(), "a time that was not checked: " << time.as_text());
  return Tick(*nanoseconds);
}

CostModel::CostModel(Tick forward, Tick backward, Tick update)
    : times_{{forward}, {backward}, {update}, {Tick(0)}} {}

ParamSpec CostModel::spec() {
  return ParamSpec::group_of(
      "cost", "How long computing takes on the clock of the schedule.",
      {ParamSpec::times_of("forward", "One forward; not 0.").or_default(1),
       ParamSpec::times_of("backward", "One backward; not 0.").or_default(1),
       ParamSpec::times_of("update", "One update of a block.").or_default(0),
       ParamSpec::list_of(
           "stragglers", "Stages that are slower (or faster) than the rest.",
           ParamSpec::group_of(
               "", "",
               {ParamSpec::integer_of("stage", "Which stage.").at_least(0).needed(),
                ParamSpec::real_of("factor", "Its times are multiplied by this and rounded up.")
                    .above(0)
                    .needed()})),
       Jitter::spec()});
}

CostModel CostModel::from(const Value& parameters, int stages, std::uint64_t seed) {
  static constexpr const char* names[] = {"forward", "backward", "update"};
  CostModel model;
  for (std::size_t kind = 0; kind < 3; ++kind) {
    const Value* given = parameters.find(names[kind]);
    if (given == nullptr) continue;
    const auto count = static_cast<std::size_t>(stages);
    if (given->is_list() && given->as_list().size() != count) {
      throw ParamError(names[kind], "has " + std::to_string(given->as_list().size()) +
                                        " times for " + std::to_string(stages) +
                                        " stages; give one time, or one per stage");
    }
    auto& times = model.times_[kind];
    times.clear();
    for (std::size_t s = 0; s < count; ++s) {
      times.push_back(tick_from(given->is_list() ? given->as_list()[s] : *given));
      if (kind < 2 && times.back() < Tick(1)) {
        throw ParamError(names[kind], "takes no time at stage " + std::to_string(s) +
                                          "; a forward or backward takes at least 1 tick");
      }
    }
  }
  if (const Value* stragglers = parameters.find("stragglers")) {
    for (std::size_t i = 0; i < stragglers->as_list().size(); ++i) {
      const Value& straggler = stragglers->as_list()[i];
      const std::int64_t stage = straggler.at("stage").as_integer();
      if (stage >= stages) {
        throw ParamError("stragglers[" + std::to_string(i) + "].stage",
                         "there is no stage " + std::to_string(stage) + "; stages are 0 to " +
                             std::to_string(stages - 1));
      }
      for (std::size_t kind = 0; kind < 3; ++kind) {
        auto& times = model.times_[kind];
        times.resize(static_cast<std::size_t>(stages), times.back());
        Tick& time = times[static_cast<std::size_t>(stage)];
        time = Tick(static_cast<std::int64_t>(
            std::ceil(static_cast<double>(time.value) * straggler.at("factor").as_real())));
      }
    }
  }
  if (const Value* jitter = parameters.find("jitter")) model.jitter_ = Jitter::from(*jitter);
  model.seed_ = seed;
  return model;
}

std::optional<Tick> CostModel::uniform(ActionKind kind) const {
  const auto& times = times_[static_cast<std::size_t>(kind)];
  const bool is_same =
      std::all_of(times.begin(), times.end(), [&](Tick time) { return time == times.front(); });
  if (!is_same || (jitter_ && times.front() > Tick(0))) return std::nullopt;
  return times.front();
}

bool CostModel::is_unit() const {
  return uniform(ActionKind::forward) == Tick(1) && uniform(ActionKind::backward) == Tick(1) &&
         uniform(ActionKind::update) == Tick(0) && uniform(ActionKind::sync) == Tick(0);
}

Tick CostModel::jittered(Tick time, ActionKind kind, Stage stage, Microbatch microbatch) const {
  const auto which =
      static_cast<std::uint64_t>(microbatch.value) * 4 + static_cast<std::uint64_t>(kind);
  const Tick drawn = jitter_->apply(
      time,
      RandomStream(seed_, DrawKind::cost_jitter, static_cast<std::uint32_t>(stage.value), which));
  return std::max(drawn, Tick(1));
}

}  // namespace pipewright
