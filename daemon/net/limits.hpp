// Bounds of what connections may ask of the daemon.
#pragma once

#include <chrono>
#include <cstddef>

#include "daemon/auth/attempts.hpp"

namespace pipewright {

struct NetLimits {
  std::size_t body_bytes_max = std::size_t{8} << 20;
  std::size_t header_bytes_max = std::size_t{8} << 10;
  /// Further connections get a 503 and are closed.
  std::size_t connections_max = 512;
  /// For a whole request, and between two.
  std::chrono::milliseconds idle_max{60'000};
  /// For the beginning of TLS.
  std::chrono::milliseconds handshake_max{10'000};
  /// From a connection of a pool to its hello.
  std::chrono::milliseconds hello_max{10'000};
  std::size_t pool_frame_bytes_max = std::size_t{32} << 20;
  /// What waits to be sent to a pool; beyond it the pool is closed, for it does not read.
  std::size_t pool_queue_bytes_max = std::size_t{64} << 20;
  /// A client that takes a frame of a stream later than this is told so and cut off ...
  std::chrono::milliseconds slow_frame{15'000};
  /// ... and is cut off without a word when it has not taken it after so long.
  std::chrono::milliseconds stuck_frame{30'000};
  std::chrono::milliseconds stream_heartbeat{10'000};
  /// Of one stream, in the system: without it a client that does not read costs some megabytes.
  std::size_t stream_send_buffer_bytes = std::size_t{128} << 10;
  std::chrono::milliseconds progress_interval{250};
  AttemptLimits attempts;
  /// Requests are logged at level info rather than debug.
  bool log_access = false;
};

}  // namespace pipewright
