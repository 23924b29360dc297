#include "daemon/net/server.hpp"

#include <spdlog/spdlog.h>

#include "daemon/net/asio.hpp"
#include "daemon/net/http_session.hpp"

namespace pipewright {

struct Server::Impl {
  Impl(asio::io_context& io, Api& api, Service& service, NetLimits limits)
      : acceptor(io), limits(limits), context{api, service, this->limits} {}

  tcp::acceptor acceptor;
  NetLimits limits;
  HttpContext context;
};

namespace {

tcp::endpoint endpoint_of(const std::string& address, std::uint16_t port) {
  error_code ec;
  const auto parsed = asio::ip::make_address(address, ec);
  if (ec) {
    throw ConfigError("--listen " + address + ": is not an IP address; 127.0.0.1 and 0.0.0.0 are");
  }
  return {parsed, port};
}

awaitable<void> accept_connections(tcp::acceptor& acceptor, HttpContext& context) {
  asio::steady_timer pause(acceptor.get_executor());
  while (acceptor.is_open()) {
    error_code ec;
    tcp::socket socket = co_await acceptor.async_accept(into(ec));
    if (!acceptor.is_open()) co_return;
    if (ec) {  // out of descriptors, or a client that left at once
      spdlog::warn("accept: {}", ec.message());
      pause.expires_after(std::chrono::milliseconds(100));
      co_await pause.async_wait(into(ec));
      continue;
    }
    socket.set_option(tcp::no_delay(true), ec);
    asio::co_spawn(acceptor.get_executor(),
                   serve_http(beast::tcp_stream(std::move(socket)), context), asio::detached);
  }
}

}  // namespace

Server::Server(asio::io_context& io, const std::string& address, std::uint16_t port, Api& api,
               Service& service, NetLimits limits)
    : impl_(std::make_shared<Impl>(io, api, service, limits)) {
  const tcp::endpoint endpoint = endpoint_of(address, port);
  tcp::acceptor& acceptor = impl_->acceptor;
  error_code ec;
  acceptor.open(endpoint.protocol(), ec);
  if (!ec) acceptor.set_option(asio::socket_base::reuse_address(true), ec);
  if (!ec) acceptor.bind(endpoint, ec);
  if (!ec) acceptor.listen(asio::socket_base::max_listen_connections, ec);
  if (ec) {
    throw ConfigError(
        "cannot listen on " + address + " port " + std::to_string(port) + ": " + ec.message() +
        (ec == asio::error::address_in_use ? "; choose another --port, or 0 for any that is free"
                                           : ""));
  }
}

Server::~Server() = default;

std::uint16_t Server::port() const {
  return impl_->acceptor.local_endpoint().port();
}

void Server::start() {
  asio::co_spawn(impl_->acceptor.get_executor(),
                 accept_connections(impl_->acceptor, impl_->context), asio::detached);
}

void Server::stop() {
  error_code ec;
  impl_->acceptor.close(ec);
}

}  // namespace pipewright
