#include "bench/service/streams.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace pipewright::bench {
namespace {

std::int64_t unix_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

}  // namespace

StreamClient::StreamClient(std::uint16_t port, const std::string& token, std::uint32_t job,
                           int receive_buffer_bytes)
    : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (receive_buffer_bytes > 0) {
    ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes,
                 sizeof receive_buffer_bytes);
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string request = "GET /v1/jobs/" + std::to_string(job) +
                              "/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " +
                              token +
                              "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                              "Sec-WebSocket-Version: 13\r\n"
                              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
  if (::connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::send(descriptor_, request.data(), request.size(), MSG_NOSIGNAL) !=
          static_cast<ssize_t>(request.size())) {
    throw std::runtime_error(std::string("a stream cannot be opened: ") + std::strerror(errno));
  }
  ::fcntl(descriptor_, F_SETFL, O_NONBLOCK);
}

StreamClient::StreamClient(StreamClient&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      got_(std::move(other.got_)),
      upgraded_(other.upgraded_),
      live_(other.live_),
      next_sequence_(other.next_sequence_),
      points_(other.points_),
      delays_ms_(std::move(other.delays_ms_)) {}

StreamClient::~StreamClient() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void StreamClient::read() {
  char bytes[64 * 1024];
  ssize_t size = 0;
  while ((size = ::recv(descriptor_, bytes, sizeof bytes, 0)) > 0) {
    got_.append(bytes, static_cast<std::size_t>(size));
  }
  if (size == 0) throw std::runtime_error("the daemon has closed a stream: " + got_.substr(0, 200));
  std::size_t at = 0;
  if (!upgraded_) {
    const std::size_t end = got_.find("\r\n\r\n");
    if (end == std::string::npos) return;
    if (!got_.starts_with("HTTP/1.1 101")) throw std::runtime_error("no stream: " + got_);
    upgraded_ = true;
    at = end + 4;
  }
  // Frames of a server: two bytes, more for a length above 125, no mask.
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(got_[i]); };
  while (got_.size() >= at + 2) {
    std::size_t length = byte(at + 1), head = 2;
    if (length >= 126) {
      const std::size_t more = length == 126 ? 2 : 8;
      if (got_.size() < at + 2 + more) break;
      length = 0;
      for (std::size_t i = 0; i < more; ++i) length = length << 8 | byte(at + 2 + i);
      head += more;
    }
    if (got_.size() < at + head + length) break;
    if ((byte(at) & 0x0f) == 2) take(std::string_view(got_).substr(at + head, length));
    at += head + length;
  }
  got_.erase(0, at);
}

void StreamClient::take(std::string_view bytes) {
  const auto frame = decode<StreamFrame>(bytes, WireFormat::protobuf);
  if (const auto* closing = std::get_if<Closing>(&frame)) {
    throw std::runtime_error("a stream was closed: " + closing->reason);
  }
  if (std::holds_alternative<LiveFromHere>(frame)) live_ = true;
  const auto* list = std::get_if<EventList>(&frame);
  if (list == nullptr) return;
  for (const Event& event : list->events) {
    if (event.sequence != next_sequence_++) throw std::runtime_error("a stream left out an event");
    if (!std::holds_alternative<Point>(event.what)) continue;
    ++points_;
    if (live_) delays_ms_.push_back(static_cast<double>(unix_ms() - event.time_unix_ms));
  }
}

void read_all(std::vector<StreamClient>& clients, int milliseconds) {
  using Clock = std::chrono::steady_clock;
  std::vector<pollfd> waits;
  for (const StreamClient& client : clients) waits.push_back({client.descriptor(), POLLIN, 0});
  const auto end = Clock::now() + std::chrono::milliseconds(milliseconds);
  while (Clock::now() < end) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    if (::poll(waits.data(), waits.size(), static_cast<int>(left.count()) + 1) <= 0) return;
    for (std::size_t i = 0; i < waits.size(); ++i) {
      if (waits[i].revents != 0) clients[i].read();
    }
  }
}

}  // namespace pipewright::bench
