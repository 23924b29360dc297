// Many clients of streams in one thread: they read what has come and check its numbers.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "proto/codec/api.hpp"

namespace pipewright::bench {

/// One client; its socket does not block.
class StreamClient {
 public:
  StreamClient(std::uint16_t port, const std::string& token, std::uint32_t job,
               int receive_buffer_bytes = 0);
  ~StreamClient();
  StreamClient(StreamClient&& other) noexcept;
  StreamClient(const StreamClient&) = delete;
  StreamClient& operator=(const StreamClient&) = delete;

  int descriptor() const { return descriptor_; }
  /// Reads all that has come. Throws when an event's number is not the next one, or the daemon has
  /// closed.
  void read();
  std::uint64_t points() const { return points_; }
  bool live() const { return live_; }
  /// Milliseconds from an event's time to its reading, of those since it was live.
  const std::vector<double>& delays_ms() const { return delays_ms_; }

 private:
  void take(std::string_view frame);

  int descriptor_ = -1;
  std::string got_;
  bool upgraded_ = false;
  bool live_ = false;
  std::uint64_t next_sequence_ = 1;
  std::uint64_t points_ = 0;
  std::vector<double> delays_ms_;
};

/// Reads what comes to any of them for so long.
void read_all(std::vector<StreamClient>& clients, int milliseconds);

}  // namespace pipewright::bench
