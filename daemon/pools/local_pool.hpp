// The pool that the daemon starts on its own machine: one mpirun of pipewright-worker, started
// again when it dies: at once if it had worked, later and later if it dies without. It outlives a
// daemon that is killed, for that one's lease, and the next one adopts it. No sockets
// here: the pool attaches like any other.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "proto/codec/local_pool.hpp"

namespace pipewright {

struct LocalPoolOptions {
  int ranks = 1;
  double silence_max_s = 30;
  std::string name = "local";
  std::filesystem::path worker;  // the program
  std::string daemon_url;
  std::filesystem::path token_file;
  std::string tls_ca = {};         // certificates that it trusts; empty: the system's
  std::filesystem::path log_file;  // its standard output and error
  std::filesystem::path data_dir;  // where the daemon says where it is, and the pool is recorded
};

class LocalPool {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Adopts a pool of an earlier daemon when it has the wanted ranks, and kills it otherwise.
  LocalPool(LocalPoolOptions options, Time now);
  /// Kills what still runs.
  ~LocalPool();
  LocalPool(const LocalPool&) = delete;
  LocalPool& operator=(const LocalPool&) = delete;

  /// To be called a few times a second: starts it, notices its end.
  void tick(Time now);
  /// Starts it no more.
  void retire() { retired_ = true; }
  /// Asks it to end (SIGTERM).
  void terminate();
  /// Ends it and all of its ranks (SIGKILL).
  void kill();
  /// Its ranks are of no more use: ends them, and starts others at the next tick.
  void replace(Time now);
  /// It has been given something to do.
  void note_work() { has_worked_ = true; }
  bool running() const { return pid_ > 0; }
  /// How it ended, once after it has.
  std::optional<std::string> take_end() { return std::exchange(end_, std::nullopt); }

 private:
  void start(Time now);
  void note_end(Time now);
  void has_ended(Time now, const std::string& how);
  void delay_next_start(Time now);
  void reap();

  LocalPoolOptions options_;
  pid_t pid_ = -1;                          // of mpirun, which leads a process group of its own
  std::optional<LocalPoolRecord> adopted_;  // it is no child of this process
  std::optional<std::string> end_;
  bool retired_ = false;
  bool has_worked_ = false;  // since it was started
  Time started_{};
  Time next_start_{};
  std::chrono::milliseconds backoff_{0};
};

}  // namespace pipewright
