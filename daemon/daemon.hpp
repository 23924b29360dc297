// The whole daemon: opens its data folder, listens, and runs until it is told to end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "daemon/net/limits.hpp"
#include "daemon/net/server.hpp"
#include "daemon/service.hpp"

namespace pipewright {

/// Where the web page is, in the build tree as when installed: ../share/pipewright/web from this
/// program's folder on.
std::filesystem::path default_page_dir();

struct DaemonOptions {
  std::filesystem::path data_dir;
  std::string listen = "127.0.0.1";
  std::uint16_t port = 7070;  // 0: any that is free
  TlsFiles tls = {};          // none: plain HTTP
  std::string tls_ca = {};  // what the local pool and local clients trust; empty: the system's CAs
  std::string announce =
      {};  // the host in url(); empty: the address, or loopback for all addresses
  bool plain_beyond_loopback = false;  // without TLS only loopback is listened on, unless told so
  std::vector<std::string> data_roots = {};  // folders; none: see DataPolicy
  int local_ranks = 0;                       // 0: no local pool
  double local_silence_max_s = 30;           // of its ranks: see pipewright-worker --silence-max
  std::filesystem::path page_dir = default_page_dir();  // need not be there: no page then
  ServiceLimits service = {};                           // also the lease of its pools
  NetLimits net = {};
};

class Daemon {
 public:
  /// Listens when this returns, and has written daemon.json. Throws ConfigError or StoreError.
  explicit Daemon(DaemonOptions options);
  ~Daemon();

  /// "http://127.0.0.1:7070"
  const std::string& url() const;
  const std::filesystem::path& data_dir() const;
  /// Returns when it has ended in order: after stop(), SIGTERM or SIGINT.
  void run();
  /// From any thread.
  void stop(const std::string& reason);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pipewright
