// What a connection becomes after its upgrade. Each runs until the connection ends.
#pragma once

#include "daemon/net/api.hpp"
#include "daemon/net/asio.hpp"
#include "daemon/net/limits.hpp"
#include "daemon/net/websocket.hpp"
#include "daemon/service.hpp"

namespace pipewright {

/// Sends a job's events: those stored, then those that come. A client that is slow holds up nobody:
/// it has a position in the events and one frame under way, not a queue.
awaitable<void> serve_stream(std::shared_ptr<WebSocket> socket, ServeStream stream,
                             Service& service, const NetLimits& limits);

/// Speaks with a pool.
awaitable<void> serve_pool(std::shared_ptr<WebSocket> socket, ServePool pool, Service& service,
                           const NetLimits& limits);

/// Why a connection that this token has opened must end; empty while it need not.
std::string token_fault(const Holder& holder);

}  // namespace pipewright
