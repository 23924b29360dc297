
#include <deque>

#include "daemon/log.hpp"
#include "daemon/net/sessions.hpp"

namespace pipewright {
namespace {

constexpr std::chrono::milliseconds close_patience{2000};

class PoolSession : public PoolPort, public std::enable_shared_from_this<PoolSession> {
 public:
  PoolSession(std::shared_ptr<WebSocket> socket, ServePool pool, Service& service,
              const NetLimits& limits, const asio::any_io_executor& executor)
      : socket_(std::move(socket)),
        holder_(std::move(pool.holder)),
        service_(service),
        limits_(limits),
        wake_(executor),
        pause_(executor) {}
  ~PoolSession() override {
    if (!pool_) return;
    try {
      service_.detach(*pool_, *this, "the daemon ended");
    } catch (const Error& error) {
      log_error("pool cannot be detached", {{"error", error.what()}});
    }
  }

  void send(std::string frame) override {
    if (closing_) return;
    queued_bytes_ += frame.size();
    queue_.push_back(std::move(frame));
    if (queued_bytes_ > limits_.pool_queue_bytes_max) {
      close("the pool does not read what it is sent");
    }
    wake_.cancel();
  }

  void close(const std::string& reason) override {
    if (closing_) return;
    closing_ = true;
    reason_ = reason;
    wake_.cancel();
    pause_.cancel();
  }

  awaitable<void> read() {
    const bool welcome = co_await hello();
    if (!welcome) co_return;
    while (true) {
      const std::optional<std::string> message = co_await socket_->read();
      if (!message || closing_) break;
      try {
        service_.on_frame(*pool_, decode_pool_frame(*message));
      } catch (const Error& error) {  // a ProtocolError, or the store refuses
        log_error("pool breaks the protocol", {{"error", error.what()}});
        close(error.what());
        break;
      }
      while (!service_.has_room() && !closing_) co_await wait_for_room();
    }
    if (!closing_) close("the connection was closed");
    const PoolId gone = *std::exchange(pool_, std::nullopt);
    try {
      service_.detach(gone, *this, reason_);
    } catch (const Error& error) {
      log_error("pool cannot be detached", {{"error", error.what()}});
    }
  }

  /// Sends what is queued, heartbeats in silence, and closes when asked to.
  awaitable<void> write() {
    while (true) {
      while (!queue_.empty()) {
        const std::string frame = std::move(queue_.front());
        queue_.pop_front();
        queued_bytes_ -= frame.size();
        const bool taken = co_await socket_->write(frame, false, limits_.stuck_frame);
        if (!taken) co_return;
      }
      if (closing_) break;
      wake_.expires_after(service_.heartbeat_interval());
      error_code ec;
      co_await wake_.async_wait(into(ec));
      if (const std::string fault = token_fault(*holder_); !fault.empty()) close(fault);
      if (!ec) send(encode_daemon_frame(Heartbeat{}));
    }
    co_await socket_->close(reason_, close_patience);
  }

 private:
  awaitable<bool> hello() {
    pause_.expires_after(limits_.hello_max);
    pause_.async_wait([weak = weak_from_this()](error_code ec) {
      const auto self = weak.lock();
      if (!ec && self && !self->pool_) self->close("no hello came in time");
    });
    const std::optional<std::string> message = co_await socket_->read();
    pause_.cancel();
    if (!message || closing_) {
      close("the connection was closed before a hello");
      co_return false;
    }
    std::string refusal;
    try {
      const PoolFrame frame = decode_pool_frame(*message);
      const auto* hello = std::get_if<PoolHello>(&frame);
      if (hello == nullptr) throw ProtocolError("the first frame of a pool is its hello");
      auto answer = service_.attach(*hello, *this);
      if (const auto* id = std::get_if<PoolId>(&answer)) {
        pool_ = *id;
        co_return true;
      }
      refusal = std::get<Refused>(answer).reason;
    } catch (const Error& error) {
      refusal = error.what();
    }
    send(encode_daemon_frame(Refused{refusal}));
    close(refusal);
    co_return false;
  }

  awaitable<void> wait_for_room() {
    pause_.expires_after(std::chrono::milliseconds(200));
    error_code ec;
    co_await pause_.async_wait(into(ec));
    // It is not silent: what it has sent waits here.
    service_.on_frame(*pool_, Heartbeat{});
  }

  std::shared_ptr<WebSocket> socket_;
  std::shared_ptr<const Holder> holder_;
  Service& service_;
  const NetLimits& limits_;
  asio::steady_timer wake_, pause_;
  std::deque<std::string> queue_;
  std::size_t queued_bytes_ = 0;
  std::optional<PoolId> pool_;
  bool closing_ = false;
  std::string reason_;
};

awaitable<void> write_until_closed(std::shared_ptr<PoolSession> session) {
  co_await session->write();
}

}  // namespace

awaitable<void> serve_pool(std::shared_ptr<WebSocket> socket, ServePool pool, Service& service,
                           const NetLimits& limits) {
  const auto executor = co_await asio::this_coro::executor;
  const auto session =
      std::make_shared<PoolSession>(std::move(socket), std::move(pool), service, limits, executor);
  asio::co_spawn(executor, write_until_closed(session), asio::detached);
  co_await session->read();
}

}  // namespace pipewright
