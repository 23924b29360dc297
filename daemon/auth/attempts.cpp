#include "daemon/auth/attempts.hpp"

#include <algorithm>

namespace pipewright {

std::optional<std::chrono::milliseconds> Attempts::enter(const std::string& peer, Time now) {
  forget(now);
  Peer& entry = peers_[peer];
  if (entry.waiting >= limits_.waiting_max) return std::nullopt;
  static constexpr unsigned doublings_max = 20;
  const unsigned doublings = std::min(entry.wrong, doublings_max);
  ++entry.wrong;
  ++entry.waiting;
  entry.last = now;
  return std::min(limits_.pause_max, limits_.pause * (1U << doublings));
}

void Attempts::leave(const std::string& peer) {
  const auto at = peers_.find(peer);
  if (at != peers_.end() && at->second.waiting > 0) --at->second.waiting;
}

/// Makes room for one more. A peer whose answers wait stays: connections are few.
void Attempts::forget(Time now) {
  std::erase_if(peers_, [&](const auto& entry) {
    return entry.second.waiting == 0 && now - entry.second.last > limits_.memory;
  });
  if (peers_.size() < limits_.peers_max) return;
  auto oldest = peers_.end();
  for (auto at = peers_.begin(); at != peers_.end(); ++at) {
    const bool older = oldest == peers_.end() || at->second.last < oldest->second.last;
    if (at->second.waiting == 0 && older) oldest = at;
  }
  if (oldest != peers_.end()) peers_.erase(oldest);
}

}  // namespace pipewright
