#include "daemon/net/websocket.hpp"

#include <algorithm>

#include "proto/codec/provenance.hpp"

namespace pipewright {

namespace ws = beast::websocket;

struct WebSocket::State {
  State(net::Stream stream) : socket(std::move(stream)), deadline(socket.get_executor()) {}
  ws::stream<net::Stream> socket;
  asio::steady_timer deadline;
};

namespace {

/// A browser that offers subprotocols wants one of them back, which must not be the one with its
/// token.
constexpr const char* websocket_protocol = "pipewright.v1";

/// Cuts the connection off unless it is destroyed in time.
template <class State>
class Deadline {
 public:
  Deadline(const std::shared_ptr<State>& state, std::chrono::milliseconds patience)
      : timer_(state->deadline) {
    timer_.expires_after(patience);
    timer_.async_wait([weak = std::weak_ptr<State>(state)](error_code ec) {
      const std::shared_ptr<State> alive = weak.lock();
      if (ec || !alive) return;
      beast::get_lowest_layer(alive->socket).close();
    });
  }
  ~Deadline() { timer_.cancel(); }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

 private:
  asio::steady_timer& timer_;
};

}  // namespace

WebSocket::WebSocket(net::Stream stream, std::size_t message_bytes_max)
    : state_(std::make_shared<State>(std::move(stream))) {
  auto& socket = state_->socket;
  beast::get_lowest_layer(socket).expires_never();  // from here on the WebSocket has its own
  auto timeout = ws::stream_base::timeout::suggested(beast::role_type::server);
  timeout.keep_alive_pings = true;
  socket.set_option(timeout);
  socket.read_message_max(message_bytes_max);
  socket.auto_fragment(false);  // a message is one frame: sent from where it is
}

WebSocket::~WebSocket() {
  cut_off();
}

void WebSocket::limit_send_buffer(std::size_t bytes) {
  error_code ignored;  // a closed connection shows at the next write
  beast::get_lowest_layer(state_->socket)
      .socket()
      .set_option(asio::socket_base::send_buffer_size(static_cast<int>(bytes)), ignored);
}

awaitable<bool> WebSocket::accept(const http::request<http::string_body>& request) {
  const std::shared_ptr<State> state = state_;
  http::token_list offered(request[http::field::sec_websocket_protocol]);
  const bool named = offered.exists(websocket_protocol);
  state->socket.set_option(ws::stream_base::decorator([named](ws::response_type& response) {
    response.set(http::field::server, "pipewrightd/" + std::string(program_version()));
    if (named) response.set(http::field::sec_websocket_protocol, websocket_protocol);
  }));
  error_code ec;
  co_await state->socket.async_accept(request, into(ec));
  co_return !ec;
}

awaitable<std::optional<std::string>> WebSocket::read() {
  const std::shared_ptr<State> state = state_;
  beast::flat_buffer buffer;
  error_code ec;
  co_await state->socket.async_read(buffer, into(ec));
  if (ec) co_return std::nullopt;
  co_return beast::buffers_to_string(buffer.data());
}

awaitable<bool> WebSocket::write(std::string_view message, bool text,
                                 std::chrono::milliseconds patience) {
  const std::shared_ptr<State> state = state_;
  state->socket.text(text);
  const Deadline deadline(state, patience);
  error_code ec;
  co_await state->socket.async_write(asio::buffer(message.data(), message.size()), into(ec));
  co_return !ec;
}

awaitable<void> WebSocket::close(std::string_view reason, std::chrono::milliseconds patience) {
  const std::shared_ptr<State> state = state_;
  const Deadline deadline(state, patience);
  error_code ec;
  ws::close_reason goodbye(ws::close_code::normal);
  goodbye.reason = beast::string_view(reason.data(), std::min<std::size_t>(reason.size(), 123));
  co_await state->socket.async_close(goodbye, into(ec));
  beast::get_lowest_layer(state->socket).close();
}

void WebSocket::cut_off() {
  beast::get_lowest_layer(state_->socket).close();
}

}  // namespace pipewright
