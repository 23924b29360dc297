// The connection under HTTP and WebSocket on both sides: a TCP stream, or TLS over one. It is what
// Asio calls an AsyncReadStream and AsyncWriteStream; its deadlines are those of the TCP stream,
// beast::get_lowest_layer. (Boost 1.74 under g++ 12: <utility> has to come first.)
#pragma once

#include <utility>
//
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/ssl.hpp>
#include <boost/beast/websocket.hpp>
#include <memory>
#include <variant>

#include "proto/net/tls.hpp"

namespace pipewright::net {

class Stream {
 public:
  using Tcp = boost::beast::tcp_stream;
  using Tls = boost::beast::ssl_stream<Tcp>;
  using executor_type = Tcp::executor_type;

  explicit Stream(Tcp tcp) : layers_(std::move(tcp)) {}
  explicit Stream(boost::asio::io_context& io) : layers_(std::in_place_type<Tcp>, io) {}

  executor_type get_executor() { return next_layer().get_executor(); }
  Tcp& next_layer() {
    Tls* over = tls();
    return over != nullptr ? over->next_layer() : std::get<Tcp>(layers_);
  }
  /// Null while it is plain.
  Tls* tls() { return std::get_if<Tls>(&layers_); }

  /// From here on it is TLS; a handshake has to follow.
  void start_tls(TlsContext& context) {
    Tcp tcp = std::move(std::get<Tcp>(layers_));
    layers_.emplace<Tls>(std::move(tcp), context.native());
  }

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    if (Tls* over = tls()) return over->async_read_some(buffers, std::forward<Token>(token));
    return std::get<Tcp>(layers_).async_read_some(buffers, std::forward<Token>(token));
  }
  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    if (Tls* over = tls()) return over->async_write_some(buffers, std::forward<Token>(token));
    return std::get<Tcp>(layers_).async_write_some(buffers, std::forward<Token>(token));
  }

 private:
  std::variant<Tcp, Tls> layers_;
};

// How a WebSocket ends its connection; found by Beast through the namespace.
inline void teardown(boost::beast::role_type role, Stream& stream,
                     boost::system::error_code& fault) {
  using boost::beast::websocket::teardown;
  if (Stream::Tls* over = stream.tls()) return teardown(role, *over, fault);
  teardown(role, stream.next_layer(), fault);
}
template <class Handler>
void async_teardown(boost::beast::role_type role, Stream& stream, Handler&& handler) {
  using boost::beast::websocket::async_teardown;
  if (Stream::Tls* over = stream.tls()) {
    return async_teardown(role, *over, std::forward<Handler>(handler));
  }
  async_teardown(role, stream.next_layer(), std::forward<Handler>(handler));
}

}  // namespace pipewright::net
