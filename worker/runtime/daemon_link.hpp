// The coordinator's connection to the daemon: a WebSocket in a thread of its own (the only other
// thread of a rank), so that heartbeats go on while the ranks compute. The thread of the ranks
// sends and polls; nothing here calls MPI.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "proto/codec/pool.hpp"
#include "proto/net/url.hpp"

namespace pipewright {

struct DaemonAddress {
  net::Url url;
  std::string token;
  std::string tls_ca = {};  // file with the certificates that are trusted; empty: the system's
};

/// Reads a token file. Throws ConfigError.
DaemonAddress daemon_address(const std::string& url, const std::string& token_file,
                             const std::string& tls_ca = {});

class DaemonLink {
 public:
  /// Begins to connect and to say hello, which fails (it is lost) after `deadline`.
  DaemonLink(const DaemonAddress& address, const PoolHello& hello, std::chrono::seconds deadline);
  ~DaemonLink();

  /// The daemon's answer to the hello, once it has come.
  std::optional<Welcome> welcome() const;
  /// Waits for it. Throws Error when there is no such daemon or it refuses.
  Welcome await_welcome();

  /// Queues a frame. Frames are sent in order, after the welcome.
  void send(const PoolFrame& frame) { send_encoded(encode_pool_frame(frame)); }
  void send_encoded(std::string frame);
  /// A frame that has come, or nothing.
  std::optional<DaemonFrame> poll();
  /// Sleeps until a frame has come, the connection is lost, or the time has passed.
  void wait(std::chrono::microseconds longest);
  /// Why the connection is gone, or nothing while it stands.
  std::optional<std::string> lost() const;
  /// Bytes that are queued and not sent.
  std::size_t queued_bytes() const;
  /// The link sends heartbeats only while this is called at least once a minute: a coordinator that
  /// hangs must not look alive.
  void alive();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pipewright
