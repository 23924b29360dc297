// The pool that the daemon starts on its own machine: one mpirun of pipewright-worker, started
// again (later and later) when it dies. No sockets here: the pool attaches like any other.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>

namespace pipewright {

struct LocalPoolOptions {
  int ranks = 1;
  std::string name = "local";
  std::filesystem::path worker;  // the program
  std::string daemon_url;
  std::filesystem::path token_file;
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
  /// Ends it (SIGKILL).
  void kill();
  bool running() const { return pid_ > 0; }

 private:
  void start(Time now);
  void note_end(Time now);

  LocalPoolOptions options_;
  pid_t pid_ = -1;  // of mpirun, which leads a process group of its own
  bool retired_ = false;
  Time started_{};
  Time next_start_{};
  std::chrono::milliseconds backoff_{0};
};

}  // namespace pipewright
