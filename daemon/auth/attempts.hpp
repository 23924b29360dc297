// Slows down whoever shows wrong tokens: the answer to each waits longer than the one before, per
// peer, and few may wait at once. Without I/O: time is an argument, waiting is the caller's.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>

namespace pipewright {

struct AttemptLimits {
  /// The answer to a peer's first wrong token waits so long; to each further one twice as long as
  /// to that before ...
  std::chrono::milliseconds pause{100};
  /// ... but not longer than this.
  std::chrono::milliseconds pause_max{5000};
  /// Answers of one peer that wait; further wrong tokens are refused at once, with a 429.
  std::size_t waiting_max = 8;
  /// A peer is forgotten so long after its last wrong token, or when too many others came since.
  std::chrono::milliseconds memory{600'000};
  std::size_t peers_max = 1024;
};

class Attempts {
 public:
  using Time = std::chrono::milliseconds;  // since any fixed point

  explicit Attempts(AttemptLimits limits = {}) : limits_(limits) {}

  /// A peer has shown a wrong token: how long the answer waits, after which leave() is to be
  /// called. Nothing when too many wait; then leave() is not to be called.
  std::optional<std::chrono::milliseconds> enter(const std::string& peer, Time now);
  void leave(const std::string& peer);
  std::size_t peers() const { return peers_.size(); }

 private:
  struct Peer {
    unsigned wrong = 0;
    std::size_t waiting = 0;
    Time last{};
  };

  void forget(Time now);

  AttemptLimits limits_;
  std::map<std::string, Peer> peers_;
};

}  // namespace pipewright
