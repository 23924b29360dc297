#include "daemon/daemon.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <optional>

#include "daemon/auth/tokens.hpp"
#include "daemon/clock.hpp"
#include "daemon/data_dir.hpp"
#include "daemon/log.hpp"
#include "daemon/net/api.hpp"
#include "daemon/net/asio.hpp"
#include "daemon/net/server.hpp"
#include "daemon/pools/local_pool.hpp"
#include "proto/net/url.hpp"

namespace pipewright {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds tick_interval{100};  // points are in the store after so long
constexpr milliseconds news_gathered{5};
// At the end, from the start of ending: what the pools and streams get to leave by themselves,
// until a SIGTERM has ended the local pool, and until it is killed.
constexpr milliseconds leave_max{1500};
constexpr milliseconds terminate_max{4000};

/// The folder of this program; what belongs to it lies there, in the build tree as when installed.
std::filesystem::path own_folder() {
  std::error_code ec;
  return std::filesystem::read_symlink("/proc/self/exe", ec).parent_path();
}

std::filesystem::path worker_program() {
  std::error_code ec;
  std::filesystem::path worker = own_folder() / "pipewright-worker";
  if (!std::filesystem::exists(worker, ec)) {
    throw ConfigError(worker.string() +
                      " is not there, so no pool can be started on this machine: "
                      "build it (it needs MPI), or use --ranks 0");
  }
  return worker;
}

asio::ip::address listened_on(const DaemonOptions& options) {
  error_code ec;
  const auto address = asio::ip::make_address(options.listen, ec);
  if (ec) {
    throw ConfigError("--listen " + options.listen +
                      ": is not an IP address; 127.0.0.1 and 0.0.0.0 are");
  }
  if (!address.is_loopback() && options.tls.certificate.empty() && !options.plain_beyond_loopback) {
    throw ConfigError(
        "--listen " + options.listen +
        ": others could read tokens and jobs on their way there; give --tls-certificate FILE "
        "--tls-key FILE, or say --allow-plain-http-beyond-loopback in a network that you trust");
  }
  return address;
}

/// Throws ConfigError for a data root that is no folder.
ServiceLimits limits_of(const DaemonOptions& options) {
  ServiceLimits limits = options.service;
  for (const std::string& root : options.data_roots) {
    std::error_code ec;
    if (!std::filesystem::is_directory(root, ec)) {
      throw ConfigError("--data-root " + root + ": is not a folder");
    }
  }
  if (!options.data_roots.empty()) limits.data_roots = DataRoots(options.data_roots).folders();
  return limits;
}

DataPolicy data_policy(const DaemonOptions& options) {
  return {DataRoots::unless_empty(options.data_roots), listened_on(options).is_loopback()};
}

/// Where a client on this machine reaches the daemon.
std::string url_of(const DaemonOptions& options, std::uint16_t port) {
  const asio::ip::address address = listened_on(options);
  std::string host = options.announce;
  if (host.empty()) host = address.to_string();
  if (options.announce.empty() && address.is_unspecified()) {
    host = address.is_v6() ? "::1" : "127.0.0.1";
  }
  return net::Url{host, std::to_string(port), !options.tls.certificate.empty()}.text();
}

/// As many descriptors as this process may have: every connection takes one.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

// The order of members is that of their lives: coroutines that io destroys still use what stands
// before it.
struct Daemon::Impl {
  explicit Impl(DaemonOptions given)
      : options(std::move(given)),
        data(options.data_dir),
        service(data.path(), limits_of(options)),
        tokens(data.path()),
        api(service, tokens, data_policy(options), Page::load(options.page_dir)),
        io(std::make_unique<asio::io_context>(1)),
        server(std::make_unique<Server>(*io, listened_on(options).to_string(), options.port,
                                        options.tls, api, service, options.net)),
        url(url_of(options, server->port())) {
    service.on_news([this] {
      if (!std::exchange(news_wait, true)) asio::co_spawn(*io, commit_news(), asio::detached);
    });
    if (options.local_ranks == 0) return;
    LocalPoolOptions pool;
    pool.ranks = options.local_ranks;
    pool.worker = worker_program();
    pool.silence_max_s = options.local_silence_max_s;
    pool.daemon_url = url;
    pool.token_file = data.token_file();
    pool.tls_ca = options.tls_ca;
    pool.log_file = data.pool_log();
    pool.data_dir = data.path();
    service.expect_local_pool(pool.name);
    local_pool.emplace(std::move(pool), Clock::now());
    if (!local_pool->running()) service.local_pool_ended("its pool is not there any more", false);
  }

  ~Impl() {
    local_pool.reset();
    server->stop();
    io.reset();      // ends the coroutines ...
    server.reset();  // ... and then what they used
  }

  awaitable<void> tick() {
    asio::steady_timer timer(*io);
    error_code ec;
    while (true) {
      if (local_pool) watch_local_pool(Clock::now());
      try {
        service.tick();
        tokens.save_uses(unix_ms());
      } catch (const Error& error) {
        log_error("tick", {{"error", error.what()}});
      }
      timer.expires_after(tick_interval);
      co_await timer.async_wait(into(ec));
    }
  }

  void watch_local_pool(Clock::time_point now) {
    if (service.local_pool_works()) local_pool->note_work();
    // At once, for mpirun takes its time. At the end of the daemon it gets that.
    if (service.local_pool_has_left() && !ending) local_pool->replace(now);
    if (const auto how = local_pool->take_end())
      service.local_pool_ended("its pool has ended: " + *how, true);
    local_pool->tick(now);
  }

  /// Ends of runs and new jobs wait a little for others: what makes one last costs as much as for
  /// many.
  awaitable<void> commit_news() {
    asio::steady_timer timer(*io, news_gathered);
    error_code ec;
    co_await timer.async_wait(into(ec));
    news_wait = false;
    try {
      service.commit();
    } catch (const Error& error) {
      log_error("commit", {{"error", error.what()}});
    }
  }

  /// SIGHUP: certificates get renewed while the daemon runs. Without TLS it means what it says, if
  /// there was a terminal.
  awaitable<void> heed_hang_ups() {
    asio::signal_set hang_ups(*io, SIGHUP);
    error_code ec;
    while (true) {
      co_await hang_ups.async_wait(into(ec));
      if (ec) co_return;
      if (!options.tls.certificate.empty()) {
        reload_tls();
      } else if (::isatty(STDERR_FILENO) != 0) {
        begin_end("the terminal was closed");
      }
    }
  }

  void reload_tls() {
    try {
      server->reload_tls();
      log_info("certificate read again", {{"file", options.tls.certificate}});
    } catch (const Error& error) {
      log_error("the certificate before stays in use", {{"error", error.what()}});
    }
  }

  awaitable<void> end(std::string reason) {
    log_info("ending", {{"reason", reason}});
    server->stop();
    if (local_pool) local_pool->retire();
    service.shut_down(reason);
    const Clock::time_point begin = Clock::now();
    bool terminated = false;
    asio::steady_timer timer(*io);
    error_code ec;
    while (true) {
      const bool pools = service.pools_attached() > 0 || (local_pool && local_pool->running());
      const bool streams = service.streams() > 0 && Clock::now() - begin < leave_max;
      if (!(pools || streams) || Clock::now() - begin > terminate_max) break;
      if (local_pool && !terminated && Clock::now() - begin > leave_max) {
        local_pool->terminate();
        terminated = true;
      }
      timer.expires_after(milliseconds(20));
      co_await timer.async_wait(into(ec));
    }
    if (local_pool) local_pool->kill();
    service.tick();  // what still waits goes to the disk
    tokens.save_uses(unix_ms(), true);
    io->stop();
  }

  void begin_end(const std::string& reason) {
    if (std::exchange(ending, true)) return;
    asio::co_spawn(*io, end(reason), [this](const std::exception_ptr& failure) {
      if (failure) io->stop();
    });
  }

  DaemonOptions options;
  DataDir data;
  Service service;
  Tokens tokens;
  Api api;
  std::unique_ptr<asio::io_context> io;
  std::unique_ptr<Server> server;
  std::string url;
  std::optional<LocalPool> local_pool;
  bool ending = false;
  bool news_wait = false;
};

std::filesystem::path default_page_dir() {
  return own_folder() / "../share/pipewright/web";
}

Daemon::Daemon(DaemonOptions options) {
  raise_descriptor_limit();
  impl_ = std::make_unique<Impl>(std::move(options));
  impl_->server->start();
  impl_->data.announce(impl_->url, impl_->options.tls_ca);
  log_info("listening", {{"url", impl_->url}, {"data_dir", impl_->data.path().string()}});
}

Daemon::~Daemon() = default;

const std::string& Daemon::url() const {
  return impl_->url;
}

const std::filesystem::path& Daemon::data_dir() const {
  return impl_->data.path();
}

void Daemon::run() {
  Impl& impl = *impl_;
  asio::signal_set signals(*impl.io, SIGTERM, SIGINT);
  signals.async_wait([&impl](error_code ec, int number) {
    if (!ec) impl.begin_end(number == SIGINT ? "interrupted" : "terminated");
  });
  asio::co_spawn(*impl.io, impl.tick(), asio::detached);
  asio::co_spawn(*impl.io, impl.heed_hang_ups(), asio::detached);
  impl.io->run();
  log_info("ended");
}

void Daemon::stop(const std::string& reason) {
  asio::post(*impl_->io, [impl = impl_.get(), reason] { impl->begin_end(reason); });
}

}  // namespace pipewright
