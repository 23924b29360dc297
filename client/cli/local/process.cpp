#include "client/cli/local/process.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <fstream>

#include "core/base/error.hpp"

namespace pipewright::cli {

namespace {

Error system_fault(const std::string& what) {
  return Error(what + ": " + std::strerror(errno));
}

/// Closes a descriptor at the end of its scope.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

/// Only async-signal-safe calls: this is the child between fork and exec.
[[noreturn]] void become(char* const* argv, int log, int report) {
  ::setsid();
  const int null = ::open("/dev/null", O_RDONLY);
  ::dup2(null, STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::dup2(report, 3);
  ::fcntl(3, F_SETFD, FD_CLOEXEC);
  ::syscall(SYS_close_range, 4U, ~0U, 0U);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execv(argv[0], argv);
  const int fault = errno;
  [[maybe_unused]] const ssize_t sent = ::write(3, &fault, sizeof fault);
  ::_exit(127);
}

/// For exec; refers to `command`.
std::vector<char*> argument_vector(const std::vector<std::string>& command) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  return argv;
}

}  // namespace

std::filesystem::path own_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

pid_t start_detached(const std::vector<std::string>& command, const std::filesystem::path& log) {
  const Descriptor output{::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)};
  if (output.fd < 0) throw system_fault("cannot write " + log.string());
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw system_fault("cannot make a pipe");
  const Descriptor reading{ends[0]};
  std::vector<char*> argv = argument_vector(command);
  pid_t pid = -1;
  {
    const Descriptor writing{ends[1]};
    pid = ::fork();
    if (pid == 0) become(argv.data(), output.fd, writing.fd);
    if (pid < 0) throw system_fault("cannot start a process");
  }
  // The pipe closes at exec; before that it carries why exec failed.
  int fault = 0;
  ssize_t count;
  do {
    count = ::read(reading.fd, &fault, sizeof fault);
  } while (count < 0 && errno == EINTR);
  if (count == sizeof fault) {
    ::waitpid(pid, nullptr, 0);
    throw Error("cannot start " + command.front() + ": " + std::strerror(fault));
  }
  return pid;
}

ProgramEnd run_program(const std::vector<std::string>& command) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw system_fault("cannot make a pipe");
  const Descriptor reading{ends[0]};
  std::vector<char*> argv = argument_vector(command);
  pid_t pid = -1;
  {
    const Descriptor writing{ends[1]};
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, writing.fd, STDOUT_FILENO);
    const int fault = ::posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    if (fault != 0) throw Error("cannot start " + command.front() + ": " + std::strerror(fault));
  }
  ProgramEnd end;
  char bytes[4096];
  for (;;) {
    const ssize_t count = ::read(reading.fd, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    end.out.append(bytes, static_cast<std::size_t>(count));
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  end.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return end;
}

std::optional<std::string> ended_child(pid_t pid) {
  int status = 0;
  if (::waitpid(pid, &status, WNOHANG) != pid) return std::nullopt;
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  return "exit status " + std::to_string(WEXITSTATUS(status));
}

Ended terminate(std::int64_t pid, std::chrono::milliseconds patience) {
  // A pidfd names this very process, even if its number is used again meanwhile.
  const Descriptor process{
      static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0U))};
  if (process.fd < 0) {
    if (errno == ESRCH) return Ended::already_gone;
    throw system_fault("cannot find process " + std::to_string(pid));
  }
  if (::syscall(SYS_pidfd_send_signal, process.fd, SIGTERM, nullptr, 0U) != 0) {
    if (errno == ESRCH) return Ended::already_gone;
    throw system_fault("cannot end process " + std::to_string(pid));
  }
  pollfd wait{process.fd, POLLIN, 0};
  int ready;
  do {
    ready = ::poll(&wait, 1, static_cast<int>(patience.count()));
  } while (ready < 0 && errno == EINTR);
  return ready > 0 ? Ended::ended : Ended::still_there;
}

std::string tail(const std::filesystem::path& file, std::uintmax_t from_byte,
                 std::size_t lines_max) {
  std::ifstream in(file);
  in.seekg(static_cast<std::streamoff>(from_byte));
  std::deque<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
    if (lines.size() > lines_max) lines.pop_front();
  }
  std::string text;
  for (const std::string& line : lines) text += "  " + line + "\n";
  return text;
}

bool port_is_free(int port) {
  if (port == 0) return true;
  const Descriptor probe{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const int reuse = 1;
  ::setsockopt(probe.fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ::bind(probe.fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
         ::listen(probe.fd, 1) == 0;
}

FolderLock::FolderLock(const std::filesystem::path& folder)
    : fd_(::open((folder / "up.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
  if (fd_ < 0) throw system_fault("cannot write into " + folder.string());
  int locked;
  do {
    locked = ::flock(fd_, LOCK_EX);
  } while (locked != 0 && errno == EINTR);
  if (locked != 0) throw system_fault("cannot lock " + folder.string());
}

FolderLock::~FolderLock() {
  ::close(fd_);
}

}  // namespace pipewright::cli
