// Follows the event streams of jobs over WebSockets: one Asio thread, a coroutine per job,
// reconnecting and resuming where it was.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "client/cli/net/endpoint.hpp"
#include "proto/codec/api.hpp"

namespace pipewright::cli {

class StreamListener {
 public:
  virtual ~StreamListener() = default;
  /// A frame of job number `index` of those that are followed. Events come without gaps or repeats.
  virtual void on_frame(std::size_t index, const StreamFrame& frame) = 0;
  /// The stream broke; it will be tried again for `patience` at most.
  virtual void on_lost(std::size_t index, const std::string& why,
                       std::chrono::seconds patience) = 0;
  virtual void on_resumed(std::size_t index) = 0;
  /// Every `tick_interval`, and at once after the terminal's size has changed.
  virtual void on_tick() {}
  /// What was read from `keys_fd`.
  virtual void on_keys(std::string_view) {}
  /// Ctrl-Z. Only asked with a `keys_fd`.
  virtual void on_suspend() {}
  /// Asked after each of the others: whether nothing more is wanted.
  virtual bool done() const { return false; }
};

struct FollowOptions {
  /// How long a lost daemon is waited for.
  std::chrono::seconds patience{60};
  /// A stream that is silent for longer is lost (the daemon sends heartbeats every 10 s).
  std::chrono::seconds silence_max{35};
  /// 0: no ticks.
  std::chrono::milliseconds tick_interval{0};
  /// A terminal whose keys the listener gets; -1: none.
  int keys_fd = -1;
  /// Goes on when every job has ended, until the listener is done.
  bool stays = false;
};

struct FollowedJob {
  std::uint32_t id = 0;
  std::uint64_t from_sequence = 1;
};

enum class FollowEnd { all_ended, interrupted, done };

/// Returns when every job's `ended` frame has come, or SIGINT or SIGTERM (with a
/// `keys_fd` also SIGHUP and SIGQUIT), or when the listener is done. Without jobs there are only
/// ticks and keys. The caller has talked to
/// the daemon before: one that cannot be reached is taken for one that will come back. `find` gives
/// the endpoint anew for each attempt, since a restarted daemon may have another port; what it
/// throws counts as not there yet. Throws ConnectionError when a daemon stays away for longer than
/// the patience, and what throw_refusal throws when it refuses a stream (no such job, wrong token).
FollowEnd follow(const std::function<Endpoint()>& find, std::span<const FollowedJob> jobs,
                 StreamListener& listener, const FollowOptions& options);

}  // namespace pipewright::cli
