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

/// Must live until the io_context has gone, whose coroutines use it.
class Server {
 public:
  /// Throws ConfigError when the address cannot be listened on. Port 0: any.
  Server(boost::asio::io_context& io, const std::string& address, std::uint16_t port, Api& api,
         Service& service, NetLimits limits);
  ~Server();

  std::uint16_t port() const;
  /// Takes connections from now on.
  void start();
  /// Takes no more.
  void stop();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace pipewright
