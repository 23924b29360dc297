// The pool that the daemon starts on its own machine: one mpirun of pipewright-worker, started
// again when it dies: at once if it had worked, later and later if it dies without. No sockets
// here: the pool attaches like any other.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>

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
};

class LocalPool {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit LocalPool(LocalPoolOptions options) : options_(std::move(options)) {}
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

 private:
  void start(Time now);
  void note_end(Time now);
  void has_ended(Time now, const std::string& how);
  void delay_next_start(Time now);

  LocalPoolOptions options_;
  pid_t pid_ = -1;  // of mpirun, which leads a process group of its own
  bool retired_ = false;
  bool has_worked_ = false;  // since it was started
  Time started_{};
  Time next_start_{};
  std::chrono::milliseconds backoff_{0};
};

}  // namespace pipewright
