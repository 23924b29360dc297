#include "worker/runtime/daemon_link.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <fstream>
#include <mutex>
#include <thread>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "proto/net/stream.hpp"
#include "worker/runtime/asio.hpp"

namespace pipewright {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = beast::websocket;
using asio::ip::tcp;
using Clock = std::chrono::steady_clock;

DaemonAddress daemon_address(const std::string& url, const std::string& token_file,
                             const std::string& tls_ca) {
  DaemonAddress address{net::parse_url(url), {}, tls_ca};
  std::ifstream file(token_file);
  std::getline(file, address.token);
  address.token = std::string(trim(address.token));
  if (!file || address.token.empty()) {
    throw ConfigError("--token-file: no token can be read from '" + token_file + "'");
  }
  return address;
}

class DaemonLink::Impl {
 public:
  Impl(const DaemonAddress& address, const PoolHello& hello, std::chrono::seconds deadline)
      : address_(address),
        tls_(address.url.tls ? net::TlsContext::of_client(address.tls_ca) : nullptr),
        socket_(io_),
        wake_writer_(io_),
        heartbeat_(io_) {
    alive();
    asio::co_spawn(
        io_, [this, hello, deadline] { return run(hello, deadline); }, asio::detached);
    thread_ = std::thread([this] { io_.run(); });
  }
  ~Impl() { stop(); }

  std::optional<Welcome> welcome() const {
    const std::lock_guard lock(mutex_);
    return welcome_;
  }

  Welcome await_welcome() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return welcome_ || lost_; });
    if (welcome_) return *welcome_;
    throw Error("cannot attach to the daemon at " + address_.url.text() + ": " + *lost_);
  }

  void send(std::string bytes) {
    queued_bytes_ += bytes.size();
    asio::post(io_, [this, bytes = std::move(bytes)]() mutable {
      outgoing_.push_back(std::move(bytes));
      wake_writer_.cancel();
    });
  }

  std::optional<DaemonFrame> poll() {
    const std::lock_guard lock(mutex_);
    if (incoming_.empty()) return std::nullopt;
    DaemonFrame frame = std::move(incoming_.front());
    incoming_.pop_front();
    return frame;
  }

  void wait(std::chrono::microseconds longest) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, longest, [&] { return !incoming_.empty() || lost_; });
  }

  std::optional<std::string> lost() const {
    const std::lock_guard lock(mutex_);
    return lost_;
  }

  std::size_t queued_bytes() const { return queued_bytes_; }
  void alive() { alive_at_ = Clock::now().time_since_epoch().count(); }

 private:
  /// Ends the thread after what is queued has been sent, or soon.
  void stop() {
    if (!thread_.joinable()) return;
    static constexpr std::chrono::seconds patience{2};
    const auto deadline = Clock::now() + patience;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_until(lock, deadline, [&] { return lost_ || queued_bytes_ == 0; });
    }
    asio::post(io_, [this] { io_.stop(); });
    thread_.join();
  }

  void lose(const std::string& why) {
    {
      const std::lock_guard lock(mutex_);
      if (!lost_) lost_ = why;
    }
    changed_.notify_all();
    boost::system::error_code ignored;
    beast::get_lowest_layer(socket_).socket().close(ignored);
    wake_writer_.cancel();
    heartbeat_.cancel();
  }

  asio::awaitable<void> run(PoolHello hello, std::chrono::seconds deadline) {
    try {
      co_await connect(deadline);
      co_await write(encode_pool_frame(hello));
      const DaemonFrame answer = co_await read();
      if (const auto* refused = std::get_if<Refused>(&answer)) {
        lose("it refuses: " + refused->reason);
        co_return;
      }
      const auto* welcome = std::get_if<Welcome>(&answer);
      if (welcome == nullptr) {
        lose("it answers with something else than a welcome");
        co_return;
      }
      interval_ =
          std::chrono::milliseconds(std::max<std::uint32_t>(welcome->heartbeat_interval_ms, 10));
      beast::get_lowest_layer(socket_).expires_never();
      heard_ = looked_ = Clock::now();
      asio::co_spawn(
          io_, [this] { return write_queue(); }, asio::detached);
      asio::co_spawn(
          io_, [this] { return send_heartbeats(); }, asio::detached);
      {
        const std::lock_guard lock(mutex_);
        welcome_ = *welcome;
      }
      changed_.notify_all();
      while (true) {
        DaemonFrame frame = co_await read();
        heard_ = Clock::now();
        if (std::holds_alternative<Heartbeat>(frame)) continue;
        {
          const std::lock_guard lock(mutex_);
          incoming_.push_back(std::move(frame));
        }
        changed_.notify_all();
      }
    } catch (const std::exception& error) {
      lose(error.what());
    }
  }

  asio::awaitable<void> connect(std::chrono::seconds deadline) {
    tcp::resolver resolver(io_);
    const auto endpoints =
        co_await resolver.async_resolve(address_.url.host, address_.url.port, asio::use_awaitable);
    auto& lowest = beast::get_lowest_layer(socket_);
    lowest.expires_after(deadline);
    co_await lowest.async_connect(endpoints, asio::use_awaitable);
    lowest.socket().set_option(tcp::no_delay(true));
    if (tls_) co_await shake_hands();
    const std::string authorization = "Bearer " + address_.token;
    socket_.set_option(
        websocket::stream_base::decorator([authorization](websocket::request_type& request) {
          request.set(beast::http::field::authorization, authorization);
        }));
    static constexpr std::size_t frame_bytes_max = std::size_t{64} << 20;
    socket_.read_message_max(frame_bytes_max);
    socket_.binary(true);
    websocket::response_type response;
    boost::system::error_code fault;
    co_await socket_.async_handshake(response, address_.url.authority(), "/v1/pools/attach",
                                     asio::redirect_error(asio::use_awaitable, fault));
    if (fault == websocket::error::upgrade_declined) {
      throw Error("it answers with status " + std::to_string(response.result_int()) +
                  (response.result_int() == 401   ? ": the token is wrong"
                   : response.result_int() == 403 ? ": the token's role is neither pool nor admin"
                                                  : ""));
    }
    if (fault) throw boost::system::system_error(fault);
  }

  asio::awaitable<void> shake_hands() {
    socket_.next_layer().start_tls(*tls_);
    auto& secured = *socket_.next_layer().tls();
    net::expect_host(secured.native_handle(), address_.url.host);
    boost::system::error_code fault;
    co_await secured.async_handshake(asio::ssl::stream_base::client,
                                     asio::redirect_error(asio::use_awaitable, fault));
    if (fault) throw Error(net::handshake_fault(secured.native_handle(), fault, address_.url.host));
  }

  asio::awaitable<void> write(std::string bytes) {
    co_await socket_.async_write(asio::buffer(bytes), asio::use_awaitable);
    last_written_ = Clock::now();
  }

  asio::awaitable<DaemonFrame> read() {
    beast::flat_buffer buffer;
    co_await socket_.async_read(buffer, asio::use_awaitable);
    const auto data = buffer.cdata();
    co_return decode_daemon_frame({static_cast<const char*>(data.data()), data.size()});
  }

  /// The only writer, so that messages never mix.
  asio::awaitable<void> write_queue() {
    try {
      while (true) {
        while (!outgoing_.empty()) {
          const std::string bytes = std::move(outgoing_.front());
          outgoing_.pop_front();
          const std::size_t size = bytes.size();
          co_await write(bytes);
          {
            const std::lock_guard lock(mutex_);  // stop() may be between looking and sleeping
            queued_bytes_ -= size;
          }
          changed_.notify_all();
        }
        boost::system::error_code woken;
        wake_writer_.expires_after(std::chrono::hours(1));
        co_await wake_writer_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
        if (lost()) co_return;
      }
    } catch (const std::exception& error) {
      lose(error.what());
    }
  }

  /// Also notices when the daemon, which sends something at least every interval, is silent.
  asio::awaitable<void> send_heartbeats() {
    static constexpr std::chrono::minutes patience{1};
    while (!lost()) {
      heartbeat_.expires_after(interval_ / 2);
      boost::system::error_code woken;
      co_await heartbeat_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
      if (is_daemon_silent()) {
        lose("the daemon was silent for more than " +
             std::to_string((interval_ * silent_intervals_max).count()) + " ms");
        co_return;
      }
      const Clock::time_point alive_at{Clock::duration(alive_at_.load())};
      const bool is_silent = Clock::now() - last_written_ >= interval_ / 2;
      if (is_silent && outgoing_.empty() && Clock::now() - alive_at < patience) {
        std::string bytes = encode_pool_frame(Heartbeat{});
        queued_bytes_ += bytes.size();
        outgoing_.push_back(std::move(bytes));
        wake_writer_.cancel();
      }
    }
  }

  bool is_daemon_silent() {
    // When this process itself stood still, what the daemon sent meanwhile may be unread.
    const auto now = Clock::now();
    const auto gap = now - std::exchange(looked_, now);
    if (gap > interval_) heard_ = std::min(now, heard_ + gap);
    return now - heard_ > interval_ * silent_intervals_max;
  }

  static constexpr int silent_intervals_max = 5;

  DaemonAddress address_;
  std::shared_ptr<net::TlsContext> tls_;  // null for plain HTTP
  asio::io_context io_;
  websocket::stream<net::Stream> socket_;
  asio::steady_timer wake_writer_, heartbeat_;
  std::deque<std::string> outgoing_;  // of the link's thread, like the next two
  Clock::time_point last_written_, heard_, looked_;
  std::chrono::milliseconds interval_{0};
  std::atomic<std::size_t> queued_bytes_{0};
  std::atomic<Clock::rep> alive_at_{0};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<DaemonFrame> incoming_;  // guarded by the mutex, like the next two
  std::optional<Welcome> welcome_;
  std::optional<std::string> lost_;
  std::thread thread_;
};

DaemonLink::DaemonLink(const DaemonAddress& address, const PoolHello& hello,
                       std::chrono::seconds deadline)
    : impl_(std::make_unique<Impl>(address, hello, deadline)) {}
DaemonLink::~DaemonLink() = default;
std::optional<Welcome> DaemonLink::welcome() const {
  return impl_->welcome();
}
Welcome DaemonLink::await_welcome() {
  return impl_->await_welcome();
}
void DaemonLink::send_encoded(std::string frame) {
  impl_->send(std::move(frame));
}
std::optional<DaemonFrame> DaemonLink::poll() {
  return impl_->poll();
}
void DaemonLink::wait(std::chrono::microseconds longest) {
  impl_->wait(longest);
}
std::optional<std::string> DaemonLink::lost() const {
  return impl_->lost();
}
std::size_t DaemonLink::queued_bytes() const {
  return impl_->queued_bytes();
}
void DaemonLink::alive() {
  impl_->alive();
}

}  // namespace pipewright
