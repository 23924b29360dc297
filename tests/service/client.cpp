#include "tests/service/client.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>

namespace pipewright::test {
namespace {

constexpr timeval deadline{.tv_sec = 60, .tv_usec = 0};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return tolower(c); });
  return text;
}

SSL_CTX* tls_context = nullptr;

}  // namespace

void speak_tls(const std::string& ca_file) {
  SSL_CTX_free(tls_context);
  tls_context = nullptr;
  if (ca_file.empty()) return;
  ::signal(SIGPIPE, SIG_IGN);  // SSL_write knows no MSG_NOSIGNAL
  tls_context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_verify(tls_context, SSL_VERIFY_PEER, nullptr);
  if (SSL_CTX_load_verify_locations(tls_context, ca_file.c_str(), nullptr) != 1) {
    throw std::runtime_error("no certificates in " + ca_file);
  }
}

Socket::Socket(std::uint16_t port, int receive_buffer_bytes)
    : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof deadline);
  ::setsockopt(descriptor_, SOL_SOCKET, SO_SNDTIMEO, &deadline, sizeof deadline);
  if (receive_buffer_bytes > 0) {
    ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes,
                 sizeof receive_buffer_bytes);
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const std::string why = std::strerror(errno);
    ::close(descriptor_);
    throw std::runtime_error("cannot connect to port " + std::to_string(port) + ": " + why);
  }
  if (tls_context != nullptr) start_tls();
}

void Socket::start_tls() {
  tls_ = SSL_new(tls_context);
  SSL_set_fd(tls_, descriptor_);
  if (SSL_connect(tls_) == 1) return;
  const long verdict = SSL_get_verify_result(tls_);
  SSL_free(tls_);
  ::close(descriptor_);
  throw std::runtime_error("no TLS: verdict " + std::to_string(verdict));
}

Socket::~Socket() {
  SSL_free(tls_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool Socket::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = tls_ != nullptr
                             ? SSL_write(tls_, bytes.data(), static_cast<int>(bytes.size()))
                             : ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) throw std::runtime_error("the daemon does not read");
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool Socket::fill() {
  char bytes[64 * 1024];
  const ssize_t got = tls_ != nullptr ? SSL_read(tls_, bytes, sizeof bytes)
                                      : ::recv(descriptor_, bytes, sizeof bytes, 0);
  if (got < 0 && errno == EAGAIN) throw std::runtime_error("the daemon sends nothing");
  if (got <= 0) return false;
  got_.append(bytes, static_cast<std::size_t>(got));
  return true;
}

std::optional<std::string> Socket::until(std::string_view mark) {
  std::size_t at = got_.find(mark);
  while (at == std::string::npos) {
    if (!fill()) return std::nullopt;
    at = got_.find(mark);
  }
  std::string text = got_.substr(0, at + mark.size());
  got_.erase(0, text.size());
  return text;
}

std::optional<std::string> Socket::exactly(std::size_t bytes) {
  while (got_.size() < bytes) {
    if (!fill()) return std::nullopt;
  }
  std::string text = got_.substr(0, bytes);
  got_.erase(0, bytes);
  return text;
}

bool Socket::at_end() {
  return got_.empty() && !fill();
}

std::string request_text(const std::string& method, const std::string& target,
                         const Headers& headers, const std::string& body) {
  std::string text = method + " " + target + " HTTP/1.1\r\nHost: localhost\r\n";
  for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
  if (!body.empty() || method == "POST") {
    text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  }
  return text + "\r\n" + body;
}

Reply read_reply(Socket& socket) {
  Reply reply;
  const std::optional<std::string> head = socket.until("\r\n\r\n");
  if (!head) return reply;
  reply.status = std::stoi(head->substr(9, 3));
  std::size_t at = head->find("\r\n") + 2;
  while (at + 2 < head->size()) {
    const std::size_t end = head->find("\r\n", at);
    const std::size_t colon = head->find(": ", at);
    reply.headers[lower(head->substr(at, colon - at))] = head->substr(colon + 2, end - colon - 2);
    at = end + 2;
  }
  if (reply.headers.contains("content-length")) {
    reply.body = socket.exactly(std::stoul(reply.headers["content-length"])).value();
  }
  return reply;
}

Reply Client::send(const std::string& method, const std::string& target, const std::string& body,
                   Headers headers) const {
  const bool has_token = std::any_of(headers.begin(), headers.end(),
                                     [](const auto& h) { return h.first == "Authorization"; });
  if (!has_token) headers.emplace_back("Authorization", "Bearer " + token_);
  Socket socket(port_);
  socket.send(request_text(method, target, headers, body));
  return read_reply(socket);
}

WebSocketClient::WebSocketClient(std::uint16_t port, const std::string& target,
                                 const std::string& token, int receive_buffer_bytes)
    : WebSocketClient(port, target, Headers{{"Authorization", "Bearer " + token}},
                      receive_buffer_bytes) {}

WebSocketClient::WebSocketClient(std::uint16_t port, const std::string& target,
                                 const Headers& headers, int receive_buffer_bytes) {
  socket_.emplace(port, receive_buffer_bytes);
  Headers all{{"Connection", "Upgrade"},
              {"Upgrade", "websocket"},
              {"Sec-WebSocket-Version", "13"},
              {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}};
  all.insert(all.end(), headers.begin(), headers.end());
  socket_->send(request_text("GET", target, all, {}));
  reply_ = read_reply(*socket_);
}

bool WebSocketClient::send(std::string_view message, int opcode) {
  if (!socket_) return false;
  std::string frame(1, static_cast<char>(0x80 | opcode));
  if (message.size() < 126) {
    frame.push_back(static_cast<char>(0x80 | message.size()));
  } else {
    // The daemon refuses a length that is written with more bytes than it needs.
    const bool medium = message.size() <= 0xffff;
    frame.push_back(static_cast<char>(0x80 | (medium ? 126 : 127)));
    for (int shift = medium ? 8 : 56; shift >= 0; shift -= 8) {
      frame.push_back(static_cast<char>(message.size() >> shift));
    }
  }
  frame.append(4, '\0');  // a mask of zeros changes nothing
  frame.append(message);
  return socket_->send(frame);
}

std::optional<std::string> WebSocketClient::receive() {
  std::string message;
  while (socket_) {
    const std::optional<std::string> head = socket_->exactly(2);
    if (!head) break;
    const int opcode = (*head)[0] & 0x0f;
    std::size_t size = static_cast<unsigned char>((*head)[1]) & 0x7f;
    if (size >= 126) {
      const std::optional<std::string> longer = socket_->exactly(size == 126 ? 2 : 8);
      if (!longer) break;
      size = 0;
      for (const char c : *longer) size = size << 8 | static_cast<unsigned char>(c);
    }
    std::optional<std::string> payload = socket_->exactly(size);
    if (!payload) break;
    if (opcode <= 2) {  // 0 goes on with the message before
      message += *payload;
      if (((*head)[0] & 0x80) != 0) return message;
    }
    if (opcode == 8) {
      send(*payload, 8);
      break;
    }
    if (opcode == 9) send(*payload, 10);
  }
  socket_.reset();
  return std::nullopt;
}

}  // namespace pipewright::test
