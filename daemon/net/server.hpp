// The listening socket and the connections of the daemon's one port.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "daemon/net/api.hpp"
#include "daemon/net/limits.hpp"

namespace boost::asio {
class io_context;
}

namespace pipewright {

/// Files in PEM; none: plain HTTP.
struct TlsFiles {
  std::string certificate, key;
};

/// Must live until the io_context has gone, whose coroutines use it.
class Server {
 public:
  /// On an IP address. Throws ConfigError when it cannot be listened on, or a file of TLS is no
  /// good. Port 0: any.
  Server(boost::asio::io_context& io, const std::string& address, std::uint16_t port,
         const TlsFiles& tls, Api& api, Service& service, NetLimits limits);
  ~Server();

  std::uint16_t port() const;
  /// Takes connections from now on.
  void start();
  /// Takes no more, nor jobs. To be called before the io_context goes.
  void stop();
  /// Reads the files of TLS again, for connections from now on. Throws ConfigError; then those
  /// before stay.
  void reload_tls();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace pipewright
