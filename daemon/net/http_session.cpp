#include "daemon/net/http_session.hpp"

#include "daemon/log.hpp"
#include "daemon/net/sessions.hpp"
#include "proto/codec/provenance.hpp"
#include "proto/net/stream.hpp"

namespace pipewright {
namespace {

using Request = http::request<http::string_body>;

class Connection {
 public:
  Connection(beast::tcp_stream stream, HttpContext& context)
      : stream_(std::move(stream)), context_(context) {
    ++context_.connections;
    stranger_ = context_.strangers.insert(context_.strangers.end(), [this] {
      make_known();
      error_code ec;
      tcp().socket().close(ec);
    });
  }
  ~Connection() {
    --context_.connections;
    make_known();
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  awaitable<void> run() {
    const bool has_room = context_.connections <= context_.limits.connections_max || make_room();
    const bool secure = co_await begin_tls();
    if (!secure) co_return;
    if (!has_room) {
      const ApiReply full = Api::fault(503, "too many connections", "");
      co_await send(full, false);
      co_await linger();
      co_return;
    }
    bool more = true;
    while (more) more = co_await serve_request();
    if (!upgraded_) co_await linger();
  }

 private:
  beast::tcp_stream& tcp() { return stream_.next_layer(); }

  void make_known() {
    if (stranger_) context_.strangers.erase(*stranger_);
    stranger_.reset();
  }
  /// Nobody without a token shall keep those who have one out.
  bool make_room() {
    if (context_.strangers.size() < 2) return false;  // but this one
    const auto leave = std::move(context_.strangers.front());
    leave();
    return true;
  }

  /// False when the connection is over.
  awaitable<bool> begin_tls() {
    if (!context_.tls) co_return true;
    tcp().expires_after(context_.limits.handshake_max);
    error_code ec;
    const bool speaks_tls = co_await beast::async_detect_ssl(stream_, buffer_, into(ec));
    if (ec) co_return false;
    if (!speaks_tls) {
      const ApiReply refusal = Api::fault(400, "this port speaks TLS: use https://", "");
      co_await send(refusal, false);
      co_await linger();
      co_return false;
    }
    tls_ = context_.tls;
    stream_.start_tls(*tls_);
    const std::size_t used = co_await stream_.tls()->async_handshake(asio::ssl::stream_base::server,
                                                                     buffer_.data(), into(ec));
    if (ec) {
      log_info("TLS handshake failed", {{"peer", peer_name()}, {"error", ec.message()}});
      co_return false;
    }
    buffer_.consume(used);
    co_return true;
  }

  /// False when the connection is over.
  awaitable<bool> serve_request() {
    http::request_parser<http::string_body> parser;
    parser.body_limit(context_.limits.body_bytes_max);
    parser.header_limit(static_cast<std::uint32_t>(context_.limits.header_bytes_max));
    tcp().expires_after(context_.limits.idle_max);
    error_code ec;
    co_await http::async_read_header(stream_, buffer_, parser, into(ec));
    if (ec) co_return co_await refuse_unreadable(ec, "");
    if (!parser.is_done() && !context_.api.may_send_body(view(parser.get()))) {
      co_return co_await refuse_body(parser.get());
    }
    if (!parser.is_done()) {
      make_known();
      if (beast::iequals(parser.get()[http::field::expect], "100-continue")) {
        constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
        co_await asio::async_write(stream_, asio::buffer(go_on.data(), go_on.size()), into(ec));
      }
      co_await http::async_read(stream_, buffer_, parser, into(ec));
      if (ec) {
        const std::string accept(parser.get()[http::field::accept]);
        co_return co_await refuse_unreadable(ec, accept);
      }
    }
    const Request request = parser.release();
    co_return co_await answer(request);
  }

  awaitable<bool> answer(const Request& request) {
    ApiAnswer answer = context_.api.answer(view(request));
    const auto* open = std::get_if<ApiReply>(&answer);
    if (open == nullptr || !open->user.empty()) make_known();
    if (auto* job = std::get_if<TakeJob>(&answer)) {
      ApiReply taken = co_await take(std::move(*job));
      answer = std::move(taken);
    }
    log_request(request, answer);
    if (const auto* reply = std::get_if<ApiReply>(&answer)) {
      if (reply->wrong_token) co_return co_await refuse_token(*reply, request.keep_alive());
      co_return co_await send(*reply, request.keep_alive());
    }
    upgraded_ = true;
    const auto* stream = std::get_if<ServeStream>(&answer);
    const std::size_t message_bytes_max =
        stream != nullptr ? std::size_t{64} << 10 : context_.limits.pool_frame_bytes_max;
    const auto socket = std::make_shared<WebSocket>(std::move(stream_), message_bytes_max);
    const bool accepted = co_await socket->accept(request);
    if (!accepted) co_return false;
    if (stream != nullptr) {
      co_await serve_stream(socket, *stream, context_.service, context_.limits);
    } else {
      co_await serve_pool(socket, std::get<ServePool>(answer), context_.service, context_.limits);
    }
    co_return false;
  }

  /// Something that comes later, to one coroutine. Shared by both sides: at the end of the daemon
  /// that coroutine may go first.
  template <class T>
  struct Later {
    asio::steady_timer timer;
    std::optional<T> value;

    static std::shared_ptr<Later> make(const asio::any_io_executor& executor) {
      return std::make_shared<Later>(
          Later{asio::steady_timer(executor, asio::steady_timer::time_point::max()), {}});
    }
    /// In the thread of the coroutine.
    void set(T result) {
      value = std::move(result);
      timer.cancel();
    }
    static awaitable<T> get(std::shared_ptr<Later> later) {
      error_code ec;
      while (!later->value) co_await later->timer.async_wait(into(ec));
      co_return std::move(*later->value);
    }
  };

  /// The reply once the job is on disk.
  awaitable<ApiReply> take(TakeJob job) {
    using Checked = std::variant<ApiReply, Store::NewJob>;
    const auto executor = co_await asio::this_coro::executor;
    const auto checked = Later<Checked>::make(executor);
    asio::post(context_.checker, [executor, format = job.format, check = std::move(job.check),
                                  checked]() mutable {
      Checked result;
      try {
        result = check();
      } catch (...) {
        result = Api::not_taken(format);
      }
      asio::post(executor, [checked = std::move(checked), result = std::move(result)]() mutable {
        checked->set(std::move(result));
      });
    });
    Checked fresh = co_await Later<Checked>::get(checked);
    auto* reply = std::get_if<ApiReply>(&fresh);
    if (reply == nullptr) {
      const auto stored = Later<Service::SubmitResult>::make(executor);
      context_.service.submit(std::get<Store::NewJob>(std::move(fresh)),
                              [stored](const Service::SubmitResult& taken) { stored->set(taken); });
      const Service::SubmitResult result = co_await Later<Service::SubmitResult>::get(stored);
      reply = &fresh.emplace<ApiReply>(Api::submitted(result, job.format));
    }
    reply->user = job.user;
    co_return std::move(*reply);
  }

  static std::string_view view(beast::string_view text) { return {text.data(), text.size()}; }
  static ApiRequest view(const Request& request) {
    return {.method = view(request.method_string()),
            .target = view(request.target()),
            .content_type = view(request[http::field::content_type]),
            .accept = view(request[http::field::accept]),
            .authorization = view(request[http::field::authorization]),
            .idempotency_key = view(request["Idempotency-Key"]),
            .subprotocols = view(request[http::field::sec_websocket_protocol]),
            .body = request.body(),
            .websocket = beast::websocket::is_upgrade(request)};
  }

  /// Without the query, in which a token may stand by mistake.
  void log_request(const Request& request, const ApiAnswer& answer) {
    const auto* reply = std::get_if<ApiReply>(&answer);
    const auto* stream = std::get_if<ServeStream>(&answer);
    const auto* pool = std::get_if<ServePool>(&answer);
    const std::string_view target = view(request.target());
    const std::string user = reply != nullptr    ? reply->user
                             : stream != nullptr ? stream->holder->name
                                                 : pool->holder->name;
    (context_.limits.log_access ? log_info : log_debug)(
        "request", {{"method", view(request.method_string())},
                    {"route", target.substr(0, target.find('?'))},
                    {"status", reply != nullptr ? reply->status : 101U},
                    {"user", user},
                    {"peer", peer_name()}});
  }

  /// A body that comes without the token is not even read.
  awaitable<bool> refuse_body(const Request& request) {
    const ApiAnswer answer = context_.api.answer(view(request));
    log_request(request, answer);
    const auto* reply = std::get_if<ApiReply>(&answer);
    if (reply != nullptr && reply->wrong_token) co_return co_await refuse_token(*reply, false);
    if (reply != nullptr) co_await send(*reply, false);
    co_return false;
  }

  /// The answer comes the later the more wrong tokens this peer has shown.
  awaitable<bool> refuse_token(const ApiReply& refusal, bool keep_alive) {
    const std::string peer = peer_name();
    const auto pause = context_.attempts.enter(peer, steady_ms());
    if (!pause) {
      const ApiReply too_many = Api::fault(
          429, "too many wrong tokens from this address: wait for the answers to those before", "");
      co_await send(too_many, false);
      co_return false;
    }
    log_warning("token refused", {{"peer", peer}, {"pause_ms", pause->count()}});
    const Attempt attempt(context_.attempts, peer);
    asio::steady_timer timer(stream_.get_executor(), *pause);
    error_code ec;
    co_await timer.async_wait(into(ec));
    co_return co_await send(refusal, keep_alive);
  }

  /// An answer that waits, until it has been sent.
  class Attempt {
   public:
    Attempt(Attempts& attempts, const std::string& peer) : attempts_(attempts), peer_(peer) {}
    ~Attempt() { attempts_.leave(peer_); }
    Attempt(const Attempt&) = delete;
    Attempt& operator=(const Attempt&) = delete;

   private:
    Attempts& attempts_;
    const std::string& peer_;
  };

  /// Of IPv6 the network, as one host has all of its addresses. On a socket for both kinds IPv4
  /// clients come as ::ffff:a.b.c.d, which are not one network.
  std::string peer_name() {
    error_code ec;
    const auto address = tcp().socket().remote_endpoint(ec).address();
    if (address.is_v6() && address.to_v6().is_v4_mapped()) {
      return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string();
    }
    if (!address.is_v6() || address.to_v6().is_loopback()) return address.to_string();
    auto bytes = address.to_v6().to_bytes();
    std::fill(bytes.begin() + 8, bytes.end(), std::uint8_t{0});
    return asio::ip::address_v6(bytes).to_string() + "/64";
  }

  static Attempts::Time steady_ms() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<Attempts::Time>(now);
  }

  awaitable<bool> refuse_unreadable(error_code ec, std::string accept) {
    ApiReply refusal;
    if (ec == http::error::body_limit) {
      refusal = Api::fault(
          413,
          "the body is larger than " + std::to_string(context_.limits.body_bytes_max) + " bytes",
          accept);
    } else if (ec == http::error::header_limit) {
      refusal = Api::fault(431,
                           "the header is larger than " +
                               std::to_string(context_.limits.header_bytes_max) + " bytes",
                           accept);
    } else if (ec == http::error::end_of_stream || ec == http::error::partial_message ||
               ec.category() != make_error_code(http::error::bad_method).category()) {
      co_return false;  // the client has left, or was idle for too long
    } else {
      refusal = Api::fault(400, "this is not HTTP/1.1: " + ec.message(), accept);
    }
    co_await send(refusal, false);
    co_return false;
  }

  template <class Body>
  void set_header(http::response<Body>& response, const ApiReply& reply, bool keep_alive) {
    response.version(11);
    response.result(reply.status);
    response.keep_alive(keep_alive);
    response.set(http::field::server, "pipewrightd/" + std::string(program_version()));
    response.set(http::field::content_type, reply.content_type);
    response.set(http::field::cache_control, reply.cache_control);
    response.set("Content-Security-Policy", reply.security_policy);
    response.set("Referrer-Policy", "no-referrer");
    response.set("X-Content-Type-Options", "nosniff");
    if (!reply.allow.empty()) response.set(http::field::allow, reply.allow);
    if (reply.status == 401) response.set(http::field::www_authenticate, "Bearer");
    if (reply.status == 426) response.set(http::field::upgrade, "websocket");
    response.prepare_payload();
  }

  /// True when the connection goes on.
  awaitable<bool> send(const ApiReply& reply, bool keep_alive) {
    if (reply.file) co_return co_await send_file(reply, keep_alive);
    http::response<http::string_body> response;
    response.body() = reply.body;
    set_header(response, reply, keep_alive);
    co_return co_await write(response, keep_alive);
  }

  awaitable<bool> send_file(const ApiReply& reply, bool keep_alive) {
    http::response<http::file_body> response;
    error_code ec;
    response.body().open(reply.file->c_str(), beast::file_mode::scan, ec);
    if (ec) {
      const ApiReply fault =
          Api::fault(503, reply.file->string() + ": cannot be read: " + ec.message(), "");
      co_return co_await send(fault, keep_alive);
    }
    set_header(response, reply, keep_alive);
    co_return co_await write(response, keep_alive);
  }

  template <class Body>
  awaitable<bool> write(http::response<Body>& response, bool keep_alive) {
    // Reset for every piece: a large file may take longer than one period of idleness.
    http::response_serializer<Body> serializer(response);
    error_code ec;
    while (!ec && !serializer.is_done()) {
      tcp().expires_after(context_.limits.idle_max);
      co_await http::async_write_some(stream_, serializer, into(ec));
    }
    co_return !ec && keep_alive;
  }

  /// Closes so that the client can read the last reply even while it still sends: what comes is
  /// read and dropped for a moment, for a reset would take the reply away from it.
  awaitable<void> linger() {
    error_code ec;
    tcp().expires_after(std::chrono::seconds(2));
    if (stream_.tls() != nullptr) {
      co_await stream_.tls()->async_shutdown(into(ec));
      ec = {};  // a client that still sends has not answered the end of TLS
    }
    tcp().socket().shutdown(tcp::socket::shutdown_send, ec);
    std::array<char, 64 * 1024> dropped{};
    for (std::size_t bytes = 0; !ec && bytes < 4 * context_.limits.body_bytes_max;) {
      bytes += co_await tcp().async_read_some(asio::buffer(dropped), into(ec));
    }
    tcp().close();
  }

  std::shared_ptr<net::TlsContext> tls_;  // outlives the stream
  std::optional<std::list<std::function<void()>>::iterator> stranger_;
  net::Stream stream_;
  HttpContext& context_;
  beast::flat_buffer buffer_;
  bool upgraded_ = false;
};

}  // namespace

awaitable<void> serve_http(beast::tcp_stream stream, HttpContext& context) {
  try {
    Connection connection(std::move(stream), context);
    co_await connection.run();
  } catch (const std::exception& error) {
    log_error("connection failed", {{"error", error.what()}});
  }
}

}  // namespace pipewright
