#include "client/cli/net/stream.hpp"

#include <fcntl.h>

#include <array>
#include <csignal>
#include <exception>
#include <optional>
#include <vector>

#include "client/cli/net/api.hpp"
#include "client/cli/net/asio.hpp"
#include "proto/net/stream.hpp"

namespace pipewright::cli {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;

namespace {

using Clock = std::chrono::steady_clock;
using WebSocket = websocket::stream<net::Stream>;

/// Why a stream broke, in words for people.
std::string reason(const boost::system::error_code& fault) {
  if (fault == beast::error::timeout) return "nothing was heard for too long";
  if (fault == websocket::error::closed || fault == asio::error::eof) return "it was closed";
  return fault.message();
}

class Follower {
 public:
  Follower(const std::function<Endpoint()>& find, std::span<const FollowedJob> jobs,
           StreamListener& listener, const FollowOptions& options)
      : find_(find), jobs_(jobs), listener_(listener), options_(options), running_(jobs.size()) {}

  FollowEnd run() {
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      asio::co_spawn(context_, follow_job(i), [this](std::exception_ptr fault) {
        if (fault && !fault_) fault_ = fault;
        if ((--running_ == 0 && !options_.stays) || fault) context_.stop();
      });
    }
    if (options_.tick_interval.count() > 0) asio::co_spawn(context_, tick(), asio::detached);
    if (options_.keys_fd >= 0) {  // elsewhere they may be meant to be ignored, as under nohup
      ends_.add(SIGHUP);
      ends_.add(SIGQUIT);
    }
    ends_.async_wait([this](beast::error_code fault, int) {
      if (fault) return;
      interrupted_ = true;
      context_.stop();
    });
    watch_resizes();
    if (options_.keys_fd >= 0) {
      // A descriptor of its own, which closes with the context.
      keys_.assign(::fcntl(options_.keys_fd, F_DUPFD_CLOEXEC, 0));
      asio::co_spawn(context_, read_keys(), asio::detached);
      watch_suspends();
    }
    context_.run();
    if (fault_) std::rethrow_exception(fault_);
    if (done_) return FollowEnd::done;
    return interrupted_ ? FollowEnd::interrupted : FollowEnd::all_ended;
  }

 private:
  asio::awaitable<void> follow_job(std::size_t index) {
    std::uint64_t next = jobs_[index].from_sequence;
    std::optional<Clock::time_point> lost_since;
    std::chrono::milliseconds pause{0};
    for (;;) {
      std::string why;
      const auto on_first_frame = [&] {
        pause = std::chrono::milliseconds{0};
        if (lost_since) listener_.on_resumed(index);
        lost_since.reset();
      };
      try {
        // A variable of its own: g++ 12 miscompiles co_await in a condition.
        const bool ended = co_await one_stream(index, next, on_first_frame, why);
        if (ended) co_return;
      } catch (const boost::system::system_error& error) {
        why = reason(error.code());
      } catch (const ConfigError&) {
        if (!lost_since) throw;
        why = "it is not there";
      } catch (const ApiError& error) {
        if (error.status() < 500) throw;
        why = error.what();
      } catch (const ProtocolError&) {
        throw;
      } catch (const Error& error) {  // no daemon
        why = error.what();
      }
      if (!lost_since) {
        lost_since = Clock::now();
        listener_.on_lost(index, why, options_.patience);
      } else if (Clock::now() - *lost_since > options_.patience) {
        throw ConnectionError("job " + name(index) + ": the daemon has been away for " +
                              std::to_string(options_.patience.count()) + " s: " + why);
      }
      pause = std::min(pause * 2 + std::chrono::milliseconds{100}, std::chrono::milliseconds{2000});
      asio::steady_timer timer(context_, pause);
      co_await timer.async_wait(asio::use_awaitable);
    }
  }

  /// True after the job's last frame; false, with the reason, when the daemon closed before it.
  asio::awaitable<bool> one_stream(std::size_t index, std::uint64_t& next,
                                   const std::function<void()>& on_first_frame, std::string& why) {
    const Endpoint endpoint = find_();
    const auto tls = endpoint.tls ? net::TlsContext::of_client(endpoint.tls_ca) : nullptr;
    WebSocket socket(context_);
    co_await connect(socket, endpoint, tls.get());
    co_await ask_for_stream(socket, endpoint, index, next);
    beast::flat_buffer buffer;
    why = "it was closed";
    for (bool first = true;; first = false) {
      beast::error_code fault;
      co_await socket.async_read(buffer, asio::redirect_error(asio::use_awaitable, fault));
      if (fault == websocket::error::closed) co_return false;
      if (fault) throw boost::system::system_error(fault);
      const auto frame = decode<StreamFrame>(
          {static_cast<const char*>(buffer.data().data()), buffer.size()}, WireFormat::protobuf);
      buffer.consume(buffer.size());
      if (first) on_first_frame();
      if (const auto* closing = std::get_if<Closing>(&frame)) why = closing->reason;
      deliver(index, frame, next);
      if (std::holds_alternative<JobEnded>(frame)) co_return true;
    }
  }

  void deliver(std::size_t index, const StreamFrame& frame, std::uint64_t& next) {
    if (const auto* list = std::get_if<EventList>(&frame)) {
      for (const Event& event : list->events) {
        if (event.sequence != next) {
          throw ProtocolError("job " + name(index) + ": event " + std::to_string(event.sequence) +
                              " came where " + std::to_string(next) + " was due");
        }
        ++next;
      }
    }
    listener_.on_frame(index, frame);
    look_whether_done();
  }

  asio::awaitable<void> connect(WebSocket& socket, const Endpoint& endpoint, net::TlsContext* tls) {
    asio::ip::tcp::resolver resolver(context_);
    auto& tcp = beast::get_lowest_layer(socket);
    const auto addresses =
        co_await resolver.async_resolve(endpoint.host, endpoint.port, asio::use_awaitable);
    tcp.expires_after(std::chrono::seconds{10});
    co_await tcp.async_connect(addresses, asio::use_awaitable);
    if (tls != nullptr) {
      socket.next_layer().start_tls(*tls);
      auto& secured = *socket.next_layer().tls();
      net::expect_host(secured.native_handle(), endpoint.host);
      beast::error_code fault;
      co_await secured.async_handshake(asio::ssl::stream_base::client,
                                       asio::redirect_error(asio::use_awaitable, fault));
      if (fault) {
        throw Error(endpoint.url() + ": " +
                    net::handshake_fault(secured.native_handle(), fault, endpoint.host));
      }
    }
    beast::get_lowest_layer(socket).expires_never();
  }

  asio::awaitable<void> ask_for_stream(WebSocket& socket, const Endpoint& endpoint,
                                       std::size_t index, std::uint64_t next) {
    socket.set_option(websocket::stream_base::timeout{
        std::chrono::seconds{10}, options_.silence_max, /*keep_alive_pings=*/false});
    socket.set_option(websocket::stream_base::decorator([&](websocket::request_type& request) {
      request.set(http::field::authorization, "Bearer " + endpoint.token);
      request.set(http::field::user_agent, "pipewright/" PIPEWRIGHT_VERSION);
      request.set(http::field::accept, "application/x-protobuf");
    }));
    const std::string target = "/v1/jobs/" + name(index) + "/stream?from=" + std::to_string(next);
    websocket::response_type response;
    beast::error_code fault;
    co_await socket.async_handshake(response, endpoint.authority(), target,
                                    asio::redirect_error(asio::use_awaitable, fault));
    if (fault == websocket::error::upgrade_declined) {
      const bool json = response[http::field::content_type].starts_with("application/json");
      throw_refusal(endpoint, response.result_int(), response.body(),
                    json ? WireFormat::json : WireFormat::protobuf);
    }
    if (fault) throw boost::system::system_error(fault);
  }

  asio::awaitable<void> tick() {
    asio::steady_timer timer(context_);
    for (;;) {
      timer.expires_after(options_.tick_interval);
      co_await timer.async_wait(asio::use_awaitable);
      tell_tick();
    }
  }

  asio::awaitable<void> read_keys() {
    std::array<char, 256> bytes;
    for (;;) {
      beast::error_code fault;
      const std::size_t count = co_await keys_.async_read_some(
          asio::buffer(bytes), asio::redirect_error(asio::use_awaitable, fault));
      if (fault) co_return;  // the terminal has gone; SIGHUP says so too
      listener_.on_keys({bytes.data(), count});
      tell_tick();
    }
  }

  /// What a listener throws must not get lost in a coroutine that nobody waits for.
  void tell_tick() {
    try {
      listener_.on_tick();
    } catch (...) {
      fault_ = std::current_exception();
      context_.stop();
    }
    look_whether_done();
  }

  void look_whether_done() {
    done_ = listener_.done();
    if (done_) context_.stop();
  }

  void watch_suspends() {
    suspends_.add(SIGTSTP);
    suspends_.async_wait([this](beast::error_code fault, int) {
      if (fault) return;
      listener_.on_suspend();
      tell_tick();
      watch_suspends();
    });
  }

  void watch_resizes() {
    resizes_.async_wait([this](beast::error_code fault, int) {
      if (fault) return;
      tell_tick();
      watch_resizes();
    });
  }

  std::string name(std::size_t index) const { return std::to_string(jobs_[index].id); }

  const std::function<Endpoint()>& find_;
  std::span<const FollowedJob> jobs_;
  StreamListener& listener_;
  const FollowOptions& options_;
  std::size_t running_;
  bool interrupted_ = false;
  bool done_ = false;
  std::exception_ptr fault_;
  asio::io_context context_{1};
  asio::signal_set ends_{context_, SIGINT, SIGTERM};
  asio::signal_set resizes_{context_, SIGWINCH};
  asio::signal_set suspends_{context_};
  asio::posix::stream_descriptor keys_{context_};
};

}  // namespace

FollowEnd follow(const std::function<Endpoint()>& find, std::span<const FollowedJob> jobs,
                 StreamListener& listener, const FollowOptions& options) {
  if (jobs.empty() && !options.stays) return FollowEnd::all_ended;
  return Follower(find, jobs, listener, options).run();
}

}  // namespace pipewright::cli
