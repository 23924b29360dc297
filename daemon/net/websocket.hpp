// A WebSocket of the server, message by message. Its coroutines must not outlive it.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/net/asio.hpp"
#include "proto/net/stream.hpp"

namespace pipewright {

class WebSocket {
 public:
  WebSocket(net::Stream stream, std::size_t message_bytes_max);
  ~WebSocket();

  /// Answers the upgrade. False when the client is gone.
  /// What the system holds of messages that the peer has not taken; it doubles that for its own
  /// use.
  void limit_send_buffer(std::size_t bytes);
  awaitable<bool> accept(const http::request<http::string_body>& request);
  /// The next message; nothing when the connection has ended. One reader at a time.
  awaitable<std::optional<std::string>> read();
  /// False when the connection has ended, or was cut off because the client had not taken the
  /// message after `patience`. One writer at a time.
  awaitable<bool> write(std::string_view message, bool text, std::chrono::milliseconds patience);
  /// Says goodbye (at most 123 bytes of `reason` are sent) and ends the connection.
  awaitable<void> close(std::string_view reason, std::chrono::milliseconds patience);
  /// Ends the connection at once: reading and writing return.
  void cut_off();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace pipewright
