#include "tests/e2e/terminal.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utmp.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace pipewright::e2e {

namespace {

using Clock = std::chrono::steady_clock;

int milliseconds_to(Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::max<std::int64_t>(0, left.count()));
}

}  // namespace

InTerminal::InTerminal(const std::vector<std::string>& command, int columns, int rows,
                       const std::vector<std::string>& environment) {
  winsize size{};
  size.ws_col = static_cast<unsigned short>(columns);
  size.ws_row = static_cast<unsigned short>(rows);
  if (::openpty(&master_, &slave_, nullptr, nullptr, &size) != 0) {
    throw std::runtime_error("there is no pseudo-terminal");
  }
  ::fcntl(master_, F_SETFD, FD_CLOEXEC);
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::setenv("TERM", "xterm-256color", 1);
    for (const std::string& entry : environment) ::putenv(const_cast<char*>(entry.c_str()));
    const int fd = ::dup(slave_);
    if (::login_tty(fd) != 0) ::_exit(126);
    ::close(slave_);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
}

InTerminal::~InTerminal() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ::close(master_);
  ::close(slave_);
}

void InTerminal::type(const std::string& keys) {
  ASSERT_EQ(::write(master_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
}

void InTerminal::resize(int columns, int rows) {
  winsize size{};
  size.ws_col = static_cast<unsigned short>(columns);
  size.ws_row = static_cast<unsigned short>(rows);
  ASSERT_EQ(::ioctl(master_, TIOCSWINSZ, &size), 0);
}

bool InTerminal::read_some(Clock::time_point deadline) {
  pollfd end{master_, POLLIN, 0};
  if (::poll(&end, 1, milliseconds_to(deadline)) <= 0) return false;
  char bytes[4096];
  const ssize_t count = ::read(master_, bytes, sizeof bytes);
  if (count <= 0) return false;
  written_.append(bytes, static_cast<std::size_t>(count));
  return true;
}

bool InTerminal::read_until(const std::string& text, std::chrono::seconds deadline) {
  const auto end = Clock::now() + deadline;
  for (;;) {
    const std::size_t at = written_.find(text, read_to_);
    if (at != std::string::npos) {
      read_to_ = at + text.size();
      return true;
    }
    if (!read_some(end)) return false;
  }
}

int InTerminal::wait(std::chrono::seconds deadline) {
  // The test holds the terminal open itself, so the end is that of the process.
  const auto end = Clock::now() + deadline;
  const int process = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0U));
  pollfd ends[2] = {{process, POLLIN, 0}, {master_, POLLIN, 0}};
  while ((ends[0].revents & POLLIN) == 0) {
    if (::poll(ends, 2, milliseconds_to(end)) <= 0) {
      ADD_FAILURE() << "process " << pid_ << " does not end; it wrote:\n" << written_;
      ::close(process);
      return -1;  // the destructor kills it
    }
    if (ends[1].revents != 0) read_some(end);
  }
  ::close(process);
  while (read_some(Clock::now())) {
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

termios InTerminal::mode() const {
  termios mode{};
  ::tcgetattr(slave_, &mode);
  return mode;
}

}  // namespace pipewright::e2e
