
#include <algorithm>

#include "daemon/log.hpp"
#include "daemon/net/sessions.hpp"

namespace pipewright {
namespace {

using Clock = std::chrono::steady_clock;

class StreamSession : public StreamPort, public std::enable_shared_from_this<StreamSession> {
 public:
  StreamSession(std::shared_ptr<WebSocket> socket, ServeStream stream, Service& service,
                const NetLimits& limits, const asio::any_io_executor& executor)
      : socket_(std::move(socket)),
        stream_(std::move(stream)),
        service_(service),
        limits_(limits),
        timer_(executor) {
    service_.subscribe(stream_.job, *this);
  }
  ~StreamSession() override { service_.unsubscribe(stream_.job, *this); }

  void wake() override { timer_.cancel(); }

  /// A client of a stream says nothing, but its close and its pongs must be read.
  awaitable<void> read() {
    bool open = true;
    while (open) {
      const std::optional<std::string> message = co_await socket_->read();
      open = message.has_value();
    }
    ended_ = true;
    wake();
  }

  awaitable<void> write() {
    last_write_ = Clock::now();
    StreamFrame fault = Closing{};
    try {
      bool more = true;
      while (!ended_ && more) more = co_await step();
    } catch (const Error& error) {  // the store refuses
      log_error("stream failed", {{"job", stream_.job}, {"error", error.what()}});
      fault = Closing{error.what()};
    }
    if (!std::get<Closing>(fault).reason.empty()) co_await send(std::move(fault));
    if (!ended_) co_await socket_->close("", limits_.stuck_frame);
  }

 private:
  /// Sends the next frame, or waits for news. False when the stream is over.
  awaitable<bool> step() {
    if (!service_.closing().empty()) {
      StreamFrame closing = Closing{service_.closing()};
      co_await send(std::move(closing));
      co_return false;
    }
    if (const std::string fault = token_fault(*stream_.holder); !fault.empty()) {
      StreamFrame closing = Closing{fault};
      co_await send(std::move(closing));
      co_return false;
    }
    EventList events = service_.next_events(stream_.job, stream_.from);
    if (!events.events.empty()) {
      stream_.from = events.next_sequence;
      StreamFrame frame = std::move(events);
      co_return co_await send(std::move(frame));
    }
    if (!service_.knows(stream_.job)) {
      StreamFrame gone = Closing{"job " + std::to_string(stream_.job) + " has been deleted"};
      co_await send(std::move(gone));
      co_return false;
    }
    if (!live_) {
      live_ = true;
      StreamFrame live = LiveFromHere{service_.job(stream_.job).value()};
      co_return co_await send(std::move(live));
    }
    if (service_.has_ended(stream_.job)) {
      StreamFrame end = JobEnded{service_.job(stream_.job).value()};
      co_await send(std::move(end));
      co_return false;
    }
    co_return co_await send_progress_or_wait();
  }

  awaitable<bool> send_progress_or_wait() {
    const std::optional<Progress> progress = service_.progress(stream_.job);
    const bool news = progress && *progress != progress_ && *progress != Progress{};
    const Clock::time_point progress_due = last_progress_ + limits_.progress_interval;
    if (news && Clock::now() >= progress_due) {
      progress_ = *progress;
      last_progress_ = Clock::now();
      StreamFrame frame = *progress;
      co_return co_await send(std::move(frame));
    }
    const Clock::time_point heartbeat_due = last_write_ + limits_.stream_heartbeat;
    if (Clock::now() >= heartbeat_due) {
      StreamFrame heartbeat = Heartbeat{};
      co_return co_await send(std::move(heartbeat));
    }
    // No news can get lost between the looks above and here: nothing else runs meanwhile.
    timer_.expires_at(news ? std::min(progress_due, heartbeat_due) : heartbeat_due);
    error_code ec;
    co_await timer_.async_wait(into(ec));
    co_return true;
  }

  awaitable<bool> send(StreamFrame frame) {
    const Clock::time_point begin = Clock::now();
    const std::string bytes = encode(frame, stream_.format);
    const bool text = stream_.format == WireFormat::json;
    const bool taken = co_await socket_->write(bytes, text, limits_.stuck_frame);
    if (!taken) {
      log_if_cut_off(begin);
      co_return false;
    }
    last_write_ = Clock::now();
    if (last_write_ - begin < limits_.slow_frame) co_return true;
    log_warning("stream too slow", {{"job", stream_.job}, {"next", stream_.from}});
    service_.metrics().stream_dropped();
    const std::string bye =
        encode(StreamFrame(Closing{"this client does not keep up; it can go on from=" +
                                   std::to_string(stream_.from)}),
               stream_.format);
    co_await socket_->write(bye, text, limits_.stuck_frame);
    co_return false;
  }

  void log_if_cut_off(Clock::time_point begin) const {
    if (Clock::now() - begin < limits_.stuck_frame) return;
    log_warning("stream cut off, nothing is read", {{"job", stream_.job}, {"next", stream_.from}});
    service_.metrics().stream_dropped();
  }

  std::shared_ptr<WebSocket> socket_;
  ServeStream stream_;
  Service& service_;
  const NetLimits& limits_;
  asio::steady_timer timer_;
  bool live_ = false;
  bool ended_ = false;
  Progress progress_;
  Clock::time_point last_progress_{};
  Clock::time_point last_write_{};
};

awaitable<void> read_until_closed(std::shared_ptr<StreamSession> session) {
  co_await session->read();
}

}  // namespace

std::string token_fault(const Holder& holder) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  if (!holder.ended(std::chrono::duration_cast<std::chrono::milliseconds>(now).count())) return {};
  return "the token '" + holder.name + "' " + (holder.revoked ? "was revoked" : "has expired");
}

awaitable<void> serve_stream(std::shared_ptr<WebSocket> socket, ServeStream stream,
                             Service& service, const NetLimits& limits) {
  const auto executor = co_await asio::this_coro::executor;
  socket->limit_send_buffer(limits.stream_send_buffer_bytes);
  const auto session = std::make_shared<StreamSession>(std::move(socket), std::move(stream),
                                                       service, limits, executor);
  asio::co_spawn(executor, read_until_closed(session), asio::detached);
  co_await session->write();
}

}  // namespace pipewright
