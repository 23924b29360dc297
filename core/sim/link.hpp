// How long a message is on its way between neighbouring stages.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "core/base/ids.hpp"
#include "core/base/params.hpp"
#include "core/sim/jitter.hpp"

namespace pipewright {

/// What a directed link remembers of the messages before: they follow each other (a link sends one
/// at a time) and do not overtake.
struct LinkQueue {
  Tick free{0};  // when the last message has left the sender
  Tick last_arrival{0};
};

/// Latency + payload / bandwidth + jitter per hop, with overrides for single links. With latency 0
/// and no bandwidth an output can be used from the tick after it was made.
class LinkModel {
 public:
  LinkModel() = default;
  explicit LinkModel(Tick latency) { all_.latency = latency; }

  /// When the message of `microbatch` from stage `from` to its neighbour `to`, made at `made`, can
  /// be used there. The messages of a link must be asked for in the order in which they are sent.
  Tick arrival(LinkQueue& queue, Stage from, Stage to, Microbatch microbatch, Tick made) const;

  /// Latency of the links that have no override.
  Tick latency() const { return all_.latency; }
  /// What every message takes, if that is the same for all.
  std::optional<Tick> uniform() const;
  /// What one message carries; from the objective.
  void set_payload_bytes(std::int64_t bytes) { payload_bytes_ = bytes; }
  /// A ring all-reduce of `bytes` over `members` on links like these: 2 (members - 1) steps, each
  /// of latency and 1/members of the bytes (Patarasuk and Yuan, 2009).
  Tick ring_all_reduce(std::int64_t bytes, int members) const;

  /// The `link` map of a job file.
  static ParamSpec spec();
  /// From a checked `link` map; durations become nanoseconds. Throws ParamError (path relative to
  /// the map) for an override between stages that are no neighbours.
  static LinkModel from(const Value& parameters, int stages, std::uint64_t seed);

 private:
  struct Link {
    Tick latency{0};
    double bytes_per_tick = std::numeric_limits<double>::infinity();
    std::optional<Jitter> jitter;
  };
  struct Override {
    Stage from, to;
    Link link;
  };

  static Link link_from(const Value& parameters, const Link& otherwise);
  const Link& link(Stage from, Stage to) const;

  Link all_;
  std::vector<Override> overrides_;
  std::int64_t payload_bytes_ = 0;
  std::uint64_t seed_ = 0;
};

}  // namespace pipewright
