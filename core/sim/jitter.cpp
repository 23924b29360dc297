#include "core/sim/jitter.hpp"

#include <cmath>

#include "core/base/error.hpp"
#include "core/sim/cost.hpp"

namespace pipewright {

ParamSpec Jitter::spec() {
  return ParamSpec::one_of(
      "jitter", "How times vary; every draw comes from seed, kind, stage and microbatch.",
      {ParamSpec::time_of("constant", "Always this much more."),
       ParamSpec::group_of("uniform", "More by a time between two.",
                           {ParamSpec::time_of("low", "The least.").or_default(0),
                            ParamSpec::time_of("high", "The most.").needed()}),
       ParamSpec::group_of("exponential", "More by a time of exponential distribution.",
                           {ParamSpec::time_of("mean", "Its mean.").needed()}),
       ParamSpec::group_of(
           "lognormal", "Times a factor exp(sigma z), z standard normal.",
           {ParamSpec::real_of("sigma", "Its spread.").at_least(0).at_most(5).needed()})});
}

Jitter Jitter::from(const Value& parameter) {
  const auto& [kind, inner] = parameter.as_map().front();
  const auto ticks = [](const Value& time) { return static_cast<double>(tick_from(time).value); };
  Jitter jitter;
  if (kind == "constant") {
    jitter.a_ = ticks(inner);
  } else if (kind == "uniform") {
    jitter.kind_ = Kind::uniform;
    jitter.a_ = ticks(inner.at("low"));
    jitter.b_ = ticks(inner.at("high"));
    if (jitter.b_ < jitter.a_) throw ParamError("jitter.uniform.high", "is below `low`");
  } else if (kind == "exponential") {
    jitter.kind_ = Kind::exponential;
    jitter.a_ = ticks(inner.at("mean"));
  } else {
    jitter.kind_ = Kind::lognormal;
    jitter.a_ = inner.at("sigma").as_real();
  }
  return jitter;
}

Tick Jitter::apply(Tick base, RandomStream draws) const {
  double time = static_cast<double>(base.value);
  switch (kind_) {
    case Kind::constant:
      time += a_;
      break;
    case Kind::uniform:
      time += a_ + (b_ - a_) * draws.uniform();
      break;
    case Kind::exponential:
      time -= a_ * std::log(draws.uniform());
      break;
    case Kind::lognormal:
      time *= std::exp(a_ * draws.normal());
      break;
  }
  return Tick(static_cast<std::int64_t>(std::ceil(time)));
}

}  // namespace pipewright
