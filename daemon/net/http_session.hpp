// One connection: requests one after the other, or an upgrade.
#pragma once

#include <functional>
#include <list>

#include "daemon/auth/attempts.hpp"
#include "daemon/net/api.hpp"
#include "daemon/net/asio.hpp"
#include "daemon/net/limits.hpp"
#include "proto/net/tls.hpp"

namespace pipewright {

/// What all connections share.
struct HttpContext {
  Api& api;
  Service& service;
  const NetLimits& limits;
  Attempts attempts{limits.attempts};
  std::shared_ptr<net::TlsContext> tls;  // of new connections; null: plain HTTP
  std::size_t connections = 0;
  /// Closes, oldest first, those that have not shown a good token yet.
  std::list<std::function<void()>> strangers = {};
  asio::thread_pool checker{1};  // of jobs, which may name large files; joined before the io ends
};

awaitable<void> serve_http(beast::tcp_stream stream, HttpContext& context);

}  // namespace pipewright
