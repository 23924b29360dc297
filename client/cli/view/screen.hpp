// Redraws a block of lines in place at the bottom of a terminal.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "client/cli/view/live.hpp"

namespace pipewright::cli {

bool is_terminal(int fd);
/// Whether to use colours there: a terminal, and NO_COLOR is not set.
bool wants_colors(int fd);
/// Of the terminal at `fd`; 80 x 24 when it cannot be told.
TerminalSize terminal_size(int fd);
/// Columns for tables at `fd`, or 0 (no limit) when it is not a terminal.
int table_columns(int fd);

class Screen {
 public:
  explicit Screen(int fd) : fd_(fd) {}
  /// Replaces the lines shown before with these, in one write.
  void show(const std::vector<std::string>& lines);

 private:
  int fd_;
  std::vector<std::string> shown_;
};

/// The escape sequences and text that replace `shown` by `lines` on a terminal that is `columns`
/// wide now: lines of `shown` that are wider have been wrapped by it. Lines that are the same stay.
std::string redraw(std::span<const std::string> shown, std::span<const std::string> lines,
                   int columns);

}  // namespace pipewright::cli
