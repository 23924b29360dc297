// A client of the daemon for tests, on plain sockets: it shares no code with the server, and can
// send what a good client would not. Every wait has a deadline; a broken expectation throws.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct ssl_st;

namespace pipewright::test {

/// What the sockets made from here on speak: TLS, with a server that a CA in this file vouches for;
/// an empty name is plain TCP.
void speak_tls(const std::string& ca_file);

class Socket {
 public:
  /// To 127.0.0.1. `receive_buffer_bytes` > 0 makes a small window, for clients that do not read.
  explicit Socket(std::uint16_t port, int receive_buffer_bytes = 0);
  ~Socket();
  Socket(Socket&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)),
        tls_(std::exchange(other.tls_, nullptr)),
        got_(std::move(other.got_)) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  /// False when the peer has closed.
  bool send(std::string_view bytes);
  /// Up to and with `mark`; nothing when the peer closes before.
  std::optional<std::string> until(std::string_view mark);
  std::optional<std::string> exactly(std::size_t bytes);
  /// True when the peer has closed (and nothing more came).
  bool at_end();

 private:
  bool fill();
  void start_tls();

  int descriptor_ = -1;
  ssl_st* tls_ = nullptr;
  std::string got_;
};

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Reply {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

/// Reads one reply; status 0 when the connection was closed before one came.
Reply read_reply(Socket& socket);

class Client {
 public:
  Client(std::uint16_t port, std::string token) : port_(port), token_(std::move(token)) {}
  /// On a connection of its own. The token goes along unless `headers` hold an Authorization.
  Reply send(const std::string& method, const std::string& target, const std::string& body = {},
             Headers headers = {}) const;
  Reply get(const std::string& target, Headers headers = {}) const {
    return send("GET", target, {}, std::move(headers));
  }
  std::uint16_t port() const { return port_; }
  const std::string& token() const { return token_; }

 private:
  std::uint16_t port_;
  std::string token_;
};

/// The text of a request.
std::string request_text(const std::string& method, const std::string& target,
                         const Headers& headers, const std::string& body);

class WebSocketClient {
 public:
  /// Asks for the upgrade; `reply()` tells how it went.
  WebSocketClient(std::uint16_t port, const std::string& target, const std::string& token,
                  int receive_buffer_bytes = 0);
  /// As a browser does, which can send no token in a header.
  WebSocketClient(std::uint16_t port, const std::string& target, const Headers& headers,
                  int receive_buffer_bytes = 0);

  const Reply& reply() const { return reply_; }
  bool send(std::string_view message, int opcode = 2);
  /// The next message; nothing once the connection is closed.
  std::optional<std::string> receive();
  void close() { socket_.reset(); }

 private:
  std::optional<Socket> socket_;
  Reply reply_;
};

}  // namespace pipewright::test
