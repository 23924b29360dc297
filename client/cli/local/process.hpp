// Processes of this machine: starting one that outlives us, and ending one in order.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace pipewright::cli {

/// The folder of this program's own binary.
std::filesystem::path own_folder();

/// Starts a program in a session of its own: standard input from /dev/null, output and errors
/// appended to `log`, no other descriptor inherited, so that a pipe this program writes to closes
/// when it ends. Throws Error.
pid_t start_detached(const std::vector<std::string>& command, const std::filesystem::path& log);

struct ProgramEnd {
  int status = 0;   // exit status; 128 + signal
  std::string out;  // its standard output
};
/// Runs a program found on the PATH to its end; its errors go where ours do. Throws Error when
/// there is no such program.
ProgramEnd run_program(const std::vector<std::string>& command);

/// How a child that was started here has ended ("exit status 1", "signal 9"); nothing while it
/// runs.
std::optional<std::string> ended_child(pid_t pid);

enum class Ended { already_gone, ended, still_there };
/// SIGTERM, then waits until the process has gone. Throws Error when it may not be signalled.
Ended terminate(std::int64_t pid, std::chrono::milliseconds patience);

/// The last lines of a text file from `from_byte` on.
std::string tail(const std::filesystem::path& file, std::uintmax_t from_byte,
                 std::size_t lines_max);

/// Whether a server could listen on 127.0.0.1:port; always for port 0.
bool port_is_free(int port);

/// Held while the program lives: two `up` on the same folder take turns. Throws Error.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_;
};

}  // namespace pipewright::cli
