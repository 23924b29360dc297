// Programs under test: run with a deadline, with everything they write, and ended by their own pid.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace pipewright::e2e {

struct Outcome {
  int status = -1;  // exit status; 128 + signal
  std::string out, err;
};

/// A program that runs beside the test. Its output is read until both pipes have closed: a child of
/// its own that kept them open would keep it from ending. Killed when it is not waited for.
class Running {
 public:
  explicit Running(const std::vector<std::string>& command);
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  pid_t pid() const { return pid_; }
  /// Reads on until standard output holds `text`; false when it ends, or the deadline passes,
  /// first.
  bool read_until(const std::string& text,
                  std::chrono::seconds deadline = std::chrono::seconds(120));
  void signal(int number) const;
  /// Reads to the end and waits. Past the deadline it is killed and the test fails.
  Outcome wait(std::chrono::seconds deadline = std::chrono::seconds(120));

 private:
  bool read_some(std::chrono::steady_clock::time_point deadline);

  pid_t pid_ = -1;
  int out_ = -1, err_ = -1;
  Outcome outcome_;
};

Outcome run(const std::vector<std::string>& command);

/// Asks until it is so; what is asked for is another process's doing. Past two minutes the test
/// fails.
template <class Question>
void until(Question&& question) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  while (!question()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

/// Empty when it is not there.
std::string read_file(const std::filesystem::path& path);
/// These files are in both folders, are not empty and have the same bytes.
void expect_same_bytes(const std::filesystem::path& folder, const std::filesystem::path& other,
                       const std::vector<std::string>& names);

/// Whether a program of that name is in one of the folders of PATH.
bool on_path(const std::string& program);

bool alive(pid_t pid);
/// All processes below `pid` whose name (as /proc shows it, at most 15 characters) is `name`; all
/// with an empty name.
std::vector<pid_t> descendants(pid_t pid, const std::string& name = {});
/// Waits until the process has gone; false past the deadline.
bool wait_gone(pid_t pid, std::chrono::seconds deadline = std::chrono::seconds(60));

}  // namespace pipewright::e2e
