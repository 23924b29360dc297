#include "client/cli/offline/progress.hpp"

#include <unistd.h>

#include <cmath>
#include <iostream>

#include "client/cli/view/text.hpp"

namespace pipewright::cli {

ProgressLine::ProgressLine() : terminal_(is_terminal(STDERR_FILENO)), screen_(STDERR_FILENO) {}

std::string ProgressLine::text(const RunControl& control, double fraction) const {
  const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
  std::string line = std::to_string(static_cast<int>(std::floor(fraction * 100))) + " %, tick " +
                     std::to_string(control.now().value) + " of " +
                     std::to_string(control.totals().makespan.value);
  if (objective_) line += ", objective " + format_short(*objective_, 6);
  if (fraction > 0) line += ", " + format_seconds(seconds * (1 - fraction) / fraction) + " left";
  return line;
}

void ProgressLine::update(const RunControl& control) {
  const auto pause = terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(2000);
  const Clock::time_point now = Clock::now();
  if (now - shown_ < pause || control.totals().makespan == Tick(0)) return;
  const double fraction = static_cast<double>(control.now().value) /
                          static_cast<double>(control.totals().makespan.value);
  if (terminal_) {
    const TerminalSize size = terminal_size(STDERR_FILENO);
    const int bar = size.columns >= 80 ? 20 : 0;
    const std::string line =
        (bar > 0 ? progress_bar(fraction, bar) + " " : std::string()) + text(control, fraction);
    screen_.show({clip(line, size.columns - 1)});
  } else {
    const int tenths = static_cast<int>(std::floor(fraction * 10));
    if (tenths == tenths_shown_) return;
    tenths_shown_ = tenths;
    std::cerr << text(control, fraction) << std::endl;
  }
  shown_ = now;
}

void ProgressLine::clear() {
  if (terminal_) screen_.show({});
}

}  // namespace pipewright::cli
