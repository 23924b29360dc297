// A program under test in a terminal of its own: what it writes as a screen shows it, its keys, its
// size.
#pragma once

#include <sys/types.h>
#include <termios.h>

#include <chrono>
#include <string>
#include <vector>

namespace pipewright::e2e {

class InTerminal {
 public:
  /// `environment`: NAME=VALUE, on top of the test's own; TERM is xterm-256color.
  InTerminal(const std::vector<std::string>& command, int columns, int rows,
             const std::vector<std::string>& environment = {});
  /// Killed when it is not waited for.
  ~InTerminal();
  InTerminal(const InTerminal&) = delete;
  InTerminal& operator=(const InTerminal&) = delete;

  pid_t pid() const { return pid_; }
  void type(const std::string& keys);
  /// The terminal gets another size, which its programs are told.
  void resize(int columns, int rows);
  /// Reads on until what was written since the last call of this holds `text`; false when it ends,
  /// or the deadline passes, first.
  bool read_until(const std::string& text,
                  std::chrono::seconds deadline = std::chrono::seconds(60));
  /// Everything that it has written.
  const std::string& written() const { return written_; }
  /// Reads to the end; gives the exit status, 128 + signal.
  int wait(std::chrono::seconds deadline = std::chrono::seconds(60));
  /// How the terminal treats keys now.
  termios mode() const;

 private:
  bool read_some(std::chrono::steady_clock::time_point deadline);

  pid_t pid_ = -1;
  int master_ = -1, slave_ = -1;
  std::string written_;
  std::size_t read_to_ = 0;
};

}  // namespace pipewright::e2e
