#include "core/sim/link.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/sim/cost.hpp"

namespace pipewright {

namespace {

Tick transfer_time(double bytes, double bytes_per_tick) {
  return Tick(static_cast<std::int64_t>(std::ceil(bytes / bytes_per_tick)));
}

ParamSpec bandwidth_parameter() {
  ParamSpec spec;
  spec.name = "bandwidth";
  spec.type = ParamType::bandwidth;
  spec.help =
      "A link sends one message after the other at this rate (\"10Gbit/s\"); without it at once.";
  return spec;
}

}  // namespace

ParamSpec LinkModel::spec() {
  const ParamSpec latency = ParamSpec::time_of(
      "latency", "From the end of an action (and of sending) to when the next stage can use it.");
  return ParamSpec::group_of(
      "link", "How long messages between neighbouring stages are on their way.",
      {ParamSpec(latency).or_default(0), bandwidth_parameter(), Jitter::spec(),
       ParamSpec::list_of(
           "overrides", "Links that differ from the rest.",
           ParamSpec::group_of(
               "", "",
               {ParamSpec::integer_of("from", "The stage that sends.").at_least(0).needed(),
                ParamSpec::integer_of("to", "Its neighbour that receives.").at_least(0).needed(),
                latency, bandwidth_parameter(), Jitter::spec()}))});
}

LinkModel::Link LinkModel::link_from(const Value& parameters, const Link& otherwise) {
  Link link = otherwise;
  if (const Value* latency = parameters.find("latency")) link.latency = tick_from(*latency);
  if (const Value* bandwidth = parameters.find("bandwidth")) {
    // A job with a bandwidth is in durations: a tick is a nanosecond.
    link.bytes_per_tick = *parse_bandwidth(bandwidth->as_text()) * 1e-9;
  }
  if (const Value* jitter = parameters.find("jitter")) link.jitter = Jitter::from(*jitter);
  return link;
}

std::optional<Tick> LinkModel::uniform() const {
  if (!overrides_.empty() || all_.jitter || std::isfinite(all_.bytes_per_tick)) return std::nullopt;
  return all_.latency;
}

LinkModel LinkModel::from(const Value& parameters, int stages, std::uint64_t seed) {
  LinkModel model;
  model.all_ = link_from(parameters, Link());
  model.seed_ = seed;
  const Value* overrides = parameters.find("overrides");
  for (std::size_t i = 0; overrides != nullptr && i < overrides->as_list().size(); ++i) {
    const Value& one = overrides->as_list()[i];
    const std::int64_t from = one.at("from").as_integer();
    const std::int64_t to = one.at("to").as_integer();
    if (std::abs(from - to) != 1 || std::max(from, to) >= stages) {
      throw ParamError("overrides[" + std::to_string(i) + "]",
                       "there is no link from stage " + std::to_string(from) + " to stage " +
                           std::to_string(to) + "; links join neighbours of the stages 0 to " +
                           std::to_string(stages - 1));
    }
    model.overrides_.push_back({Stage(static_cast<std::int32_t>(from)),
                                Stage(static_cast<std::int32_t>(to)), link_from(one, model.all_)});
  }
  return model;
}

const LinkModel::Link& LinkModel::link(Stage from, Stage to) const {
  for (const Override& one : overrides_) {
    if (one.from == from && one.to == to) return one.link;
  }
  return all_;
}

Tick LinkModel::arrival(LinkQueue& queue, Stage from, Stage to, Microbatch microbatch,
                        Tick made) const {
  const Link& l = link(from, to);
  queue.free = std::max(queue.free, made) +
               transfer_time(static_cast<double>(payload_bytes_), l.bytes_per_tick);
  Tick latency = l.latency;
  if (l.jitter) {
    const auto which = static_cast<std::uint32_t>(from.value) * 2 + (to > from ? 1 : 0);
    latency = l.jitter->apply(latency, RandomStream(seed_, DrawKind::link_jitter, which,
                                                    static_cast<std::uint64_t>(microbatch.value)));
  }
  queue.last_arrival = std::max(queue.last_arrival, queue.free + latency);
  return queue.last_arrival;
}

Tick LinkModel::ring_all_reduce(std::int64_t bytes, int members) const {
  const Tick step =
      all_.latency + transfer_time(static_cast<double>(bytes) / members, all_.bytes_per_tick);
  return Tick(2 * (members - 1) * step.value);
}

}  // namespace pipewright
