// The real pipewrightd as a process of a test.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/service/support.hpp"

namespace pipewright::test {

/// Ended by its own pid, whatever happens.
class Process {
 public:
  Process(std::vector<std::string> words, const std::filesystem::path& log) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ != 0) return;
    const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    ::close_range(3, ~0U, 0);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  ~Process() {
    if (pid_ > 0) kill(SIGKILL);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  bool running() {
    if (pid_ > 0 && ::waitpid(pid_, &status_, WNOHANG) == pid_) pid_ = -1;
    return pid_ > 0;
  }
  /// Its exit status, or minus the signal that ended it.
  int wait() {
    if (pid_ > 0) ::waitpid(pid_, &status_, 0);
    pid_ = -1;
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : -WTERMSIG(status_);
  }
  int kill(int signal) {
    ::kill(pid_, signal);
    return wait();
  }

 private:
  pid_t pid_ = -1;
  int status_ = 0;
};

struct DaemonProcess : testing::Test {
  TemporaryFolder folder;
  std::filesystem::path data = folder.path() / "data";
  std::filesystem::path log = folder.path() / "log";

  std::unique_ptr<Process> launch(std::vector<std::string> more = {"--port", "0"}) {
    std::vector<std::string> words = {PIPEWRIGHT_BINARY_DIR "/bin/pipewrightd", "--data-dir",
                                      data.string()};
    words.insert(words.end(), more.begin(), more.end());
    return std::make_unique<Process>(words, log);
  }
  /// A client of the daemon once it listens.
  Client client_of(Process& process) {
    const std::string pid = "\"pid\": " + std::to_string(process.pid());
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    std::string text;
    while (text.find(pid) == std::string::npos) {
      text = read_file(data / "daemon.json");
      if (!process.running() || std::chrono::steady_clock::now() > deadline) {
        throw std::runtime_error("the daemon did not start: " + read_file(log));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    const std::size_t url = text.find("http://");
    const std::string address = text.substr(url, text.find('"', url) - url);
    return {port_of(address), read_file(data / "token").substr(0, 64)};
  }
};

}  // namespace pipewright::test
