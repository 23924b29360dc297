#include "daemon/net/server.hpp"

#include "daemon/log.hpp"
#include "daemon/net/asio.hpp"
#include "daemon/net/http_session.hpp"

namespace pipewright {

struct Server::Impl {
  Impl(asio::io_context& io, TlsFiles files, Api& api, Service& service, NetLimits limits)
      : acceptor(io),
        files(std::move(files)),
        limits(limits),
        context{.api = api, .service = service, .limits = this->limits, .tls = {}} {
    read_tls();
  }

  void read_tls() {
    if (files.certificate.empty()) return;
    context.tls = net::TlsContext::of_server(files.certificate, files.key);
  }

  tcp::acceptor acceptor;
  TlsFiles files;
  NetLimits limits;
  HttpContext context;
};

namespace {

awaitable<void> accept_connections(tcp::acceptor& acceptor, HttpContext& context) {
  asio::steady_timer pause(acceptor.get_executor());
  while (acceptor.is_open()) {
    error_code ec;
    tcp::socket socket = co_await acceptor.async_accept(into(ec));
    if (!acceptor.is_open()) co_return;
    if (ec) {  // out of descriptors, or a client that left at once
      log_warning("accept", {{"error", ec.message()}});
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

Server::Server(asio::io_context& io, const std::string& address, std::uint16_t port,
               const TlsFiles& tls, Api& api, Service& service, NetLimits limits)
    : impl_(std::make_shared<Impl>(io, tls, api, service, limits)) {
  const tcp::endpoint endpoint(asio::ip::make_address(address), port);
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

void Server::reload_tls() {
  impl_->read_tls();
}

void Server::stop() {
  error_code ec;
  impl_->acceptor.close(ec);
  impl_->context.checker.stop();
  impl_->context.checker.join();
}

}  // namespace pipewright
