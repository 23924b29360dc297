#include "client/cli/net/http.hpp"

#include <functional>
#include <limits>

#include "client/cli/net/asio.hpp"
#include "proto/net/stream.hpp"

namespace pipewright::cli {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

namespace {

/// Blocking steps over asynchronous ones, because only those have deadlines.
class Connection {
 public:
  Connection(const Endpoint& endpoint, std::chrono::milliseconds deadline)
      : endpoint_(endpoint), deadline_(deadline), stream_(context_) {
    if (endpoint.tls) tls_ = net::TlsContext::of_client(endpoint.tls_ca);
    asio::ip::tcp::resolver resolver(context_);
    beast::error_code fault;
    const auto addresses = resolver.resolve(endpoint.host, endpoint.port, fault);
    if (fault) fail("the host '" + endpoint.host + "' is not known", fault);
    const auto connected = step(
        [&](auto handler) { stream_.next_layer().async_connect(addresses, std::move(handler)); });
    if (connected == asio::error::connection_refused) {
      throw ConnectionError("no daemon at " + endpoint.url() + " (" + endpoint.found_by +
                            "): the connection was refused; start one with `pipewright up`");
    }
    if (connected) fail("cannot connect", connected);
    if (tls_) shake_hands();
    connected_ = true;
  }

  void send(const HttpRequest& given) {
    http::request<http::string_body> request;
    request.method_string(given.method);
    request.target(given.target);
    request.version(11);
    request.set(http::field::host, endpoint_.authority());
    request.set(http::field::user_agent, "pipewright/" PIPEWRIGHT_VERSION);
    request.set(http::field::authorization, "Bearer " + endpoint_.token);
    request.set(http::field::accept, given.accept);
    request.set(http::field::connection, "close");
    if (!given.content_type.empty()) request.set(http::field::content_type, given.content_type);
    if (!given.idempotency_key.empty()) request.set("Idempotency-Key", given.idempotency_key);
    request.body() = given.body;
    request.prepare_payload();
    // A daemon that refuses a body may answer and close before it has all of it: the reply counts.
    step([&](auto handler) { http::async_write(stream_, request, std::move(handler)); });
  }

  template <class Parser>
  void read_header(Parser& parser) {
    if (const auto fault = step([&](auto handler) {
          http::async_read_header(stream_, buffer_, parser, std::move(handler));
        })) {
      fail("no answer", fault);
    }
  }

  template <class Parser>
  void read_some(Parser& parser) {
    if (const auto fault = step([&](auto handler) {
          http::async_read_some(stream_, buffer_, parser, std::move(handler));
        })) {
      fail("the answer broke off", fault);
    }
  }

 private:
  void shake_hands() {
    stream_.start_tls(*tls_);
    auto& tls = *stream_.tls();
    net::expect_host(tls.native_handle(), endpoint_.host);
    const auto fault = step([&](auto handler) {
      tls.async_handshake(asio::ssl::stream_base::client, std::move(handler));
    });
    if (!fault) return;
    throw ConnectionError(endpoint_.url() + " (" + endpoint_.found_by +
                          "): " + net::handshake_fault(tls.native_handle(), fault, endpoint_.host));
  }

  template <class Start>
  beast::error_code step(Start start) {
    beast::error_code result;
    stream_.next_layer().expires_after(deadline_);
    start([&result](beast::error_code fault, auto&&...) { result = fault; });
    context_.restart();
    context_.run();
    return result;
  }

  [[noreturn]] void fail(const std::string& what, beast::error_code fault) {
    const std::string text =
        endpoint_.url() + " (" + endpoint_.found_by + "): " + what + ": " + fault.message();
    if (connected_) throw BrokenConnection(text);
    throw ConnectionError(text);
  }

  const Endpoint& endpoint_;
  std::chrono::milliseconds deadline_;
  asio::io_context context_{1};
  std::shared_ptr<net::TlsContext> tls_;  // null for plain HTTP
  net::Stream stream_;
  bool connected_ = false;
  beast::flat_buffer buffer_;
};

template <class Body>
HttpReply reply_of(const http::response<Body>& message, std::string body) {
  return {.status = message.result_int(),
          .content_type = std::string(message[http::field::content_type]),
          .body = std::move(body)};
}

HttpReply read_text(Connection& connection, http::response_parser<http::string_body>& parser) {
  while (!parser.is_done()) connection.read_some(parser);
  auto message = parser.release();
  return reply_of(message, std::move(message.body()));
}

}  // namespace

HttpReply exchange(const Endpoint& endpoint, const HttpRequest& request,
                   std::chrono::milliseconds deadline) {
  Connection connection(endpoint, deadline);
  connection.send(request);
  http::response_parser<http::string_body> parser;
  parser.body_limit(std::uint64_t{1} << 30U);
  connection.read_header(parser);
  return read_text(connection, parser);
}

HttpReply download(const Endpoint& endpoint, const HttpRequest& request,
                   const std::filesystem::path& path, std::chrono::milliseconds deadline) {
  Connection connection(endpoint, deadline);
  connection.send(request);
  http::response_parser<http::empty_body> header;
  header.body_limit(std::numeric_limits<std::uint64_t>::max());  // 1.74 takes none for 0
  connection.read_header(header);
  if (header.get().result() != http::status::ok) {
    http::response_parser<http::string_body> text(std::move(header));
    return read_text(connection, text);
  }
  http::response_parser<http::file_body> parser(std::move(header));
  const std::filesystem::path part = path.string() + ".part";
  beast::error_code fault;
  parser.get().body().open(part.c_str(), beast::file_mode::write, fault);
  if (fault) throw Error("cannot write " + part.string() + ": " + fault.message());
  while (!parser.is_done()) connection.read_some(parser);
  auto message = parser.release();
  message.body().close();
  std::filesystem::rename(part, path);
  return reply_of(message, {});
}

}  // namespace pipewright::cli
