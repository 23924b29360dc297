#include "tests/e2e/processes.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string_view>

#include "core/base/text.hpp"

namespace pipewright::e2e {

namespace {

using Clock = std::chrono::steady_clock;

int milliseconds_to(Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::max<std::int64_t>(0, left.count()));
}

struct Stat {
  std::string name;
  char state = 'X';
  pid_t parent = 0;
};

Stat stat_of(const std::filesystem::path& folder) {
  std::ifstream file(folder / "stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t open = text.find('('), close = text.rfind(')');
  if (open == std::string::npos || close + 4 >= text.size()) return {};
  return {text.substr(open + 1, close - open - 1), text[close + 2],
          static_cast<pid_t>(std::stol(text.substr(close + 4)))};
}

}  // namespace

Running::Running(const std::vector<std::string>& command) {
  int out[2], err[2];
  if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) throw std::bad_alloc();
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(::open("/dev/null", O_RDONLY), 0);
    ::dup2(out[1], 1);
    ::dup2(err[1], 2);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(out[1]);
  ::close(err[1]);
  out_ = out[0];
  err_ = err[0];
}

Running::~Running() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (out_ >= 0) ::close(out_);
  if (err_ >= 0) ::close(err_);
}

bool Running::read_some(Clock::time_point deadline) {
  pollfd ends[2] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};  // poll passes over negative ones
  if (::poll(ends, 2, milliseconds_to(deadline)) <= 0) return false;
  for (int i = 0; i < 2; ++i) {
    if (ends[i].revents == 0) continue;
    char bytes[4096];
    const ssize_t count = ::read(ends[i].fd, bytes, sizeof bytes);
    int& fd = i == 0 ? out_ : err_;
    if (count > 0) {
      (i == 0 ? outcome_.out : outcome_.err).append(bytes, static_cast<std::size_t>(count));
    } else if (count == 0) {
      ::close(fd);
      fd = -1;
    }
  }
  return true;
}

bool Running::read_until(const std::string& text, std::chrono::seconds deadline) {
  const auto end = Clock::now() + deadline;
  while (outcome_.out.find(text) == std::string::npos) {
    if (out_ < 0 || !read_some(end)) return false;
  }
  return true;
}

void Running::signal(int number) const {
  ::kill(pid_, number);
}

Outcome Running::wait(std::chrono::seconds deadline) {
  const auto end = Clock::now() + deadline;
  while ((out_ >= 0 || err_ >= 0) && read_some(end)) {
  }
  if (out_ >= 0 || err_ >= 0) {
    ADD_FAILURE() << "process " << pid_ << " did not end in " << deadline.count()
                  << " s; it wrote:\n"
                  << outcome_.out << outcome_.err;
    ::kill(pid_, SIGKILL);
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  outcome_.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome_;
}

Outcome run(const std::vector<std::string>& command) {
  return Running(command).wait();
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void expect_same_bytes(const std::filesystem::path& folder, const std::filesystem::path& other,
                       const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const std::string bytes = read_file(folder / name);
    EXPECT_FALSE(bytes.empty()) << name;
    EXPECT_TRUE(bytes == read_file(other / name)) << name << " differs";
  }
}

bool on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  for (const std::string_view folder : split(path == nullptr ? "" : path, ':')) {
    if (std::filesystem::exists(std::filesystem::path(folder) / program)) return true;
  }
  return false;
}

bool alive(pid_t pid) {
  const Stat stat = stat_of("/proc/" + std::to_string(pid));
  return stat.state != 'X' && stat.state != 'Z';
}

std::vector<pid_t> descendants(pid_t pid, const std::string& name) {
  std::map<pid_t, Stat> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string folder = entry.path().filename().string();
    if (folder.find_first_not_of("0123456789") != std::string::npos) continue;
    all[static_cast<pid_t>(std::stol(folder))] = stat_of(entry.path());
  }
  std::vector<pid_t> found;
  for (const auto& [candidate, stat] : all) {
    pid_t ancestor = stat.parent;
    while (ancestor > 1 && ancestor != pid && all.contains(ancestor))
      ancestor = all[ancestor].parent;
    if (ancestor == pid && (name.empty() || stat.name == name)) found.push_back(candidate);
  }
  return found;
}

bool wait_gone(pid_t pid, std::chrono::seconds deadline) {
  const int process = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U));
  if (process < 0) return true;
  pollfd wait{process, POLLIN, 0};
  const int ready = ::poll(&wait, 1, static_cast<int>(deadline.count() * 1000));
  ::close(process);
  return ready > 0;
}

}  // namespace pipewright::e2e
