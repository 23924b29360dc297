#include "client/cli/offline/progress.hpp"

#include <unistd.h>

#include <cmath>
#include <iostream>

#include "client/cli/view/text.hpp"

namespace pipewright::cli {

ProgressLine::ProgressLine() : terminal_(is_terminal(STDERR_FILENO)), screen_(STDERR_FILENO) {}

void ProgressLine::update(const RunControl& control) {
  if (control.totals().makespan == Tick(0)) return;
  const double fraction = static_cast<double>(control.now().value) /
                          static_cast<double>(control.totals().makespan.value);
  update(fraction, [&] {
    std::string line = "tick " + std::to_string(control.now().value) + " of " +
                       std::to_string(control.totals().makespan.value);
    if (objective_) {
      line += ", objective " + format_short(*objective_, 6);
    } else if (loss_) {
      line += ", last-stage loss " + format_short(*loss_, 4);
    }
    return line;
  });
}

void ProgressLine::update(double fraction, const std::function<std::string()>& text) {
  const auto pause = terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(2000);
  const Clock::time_point now = Clock::now();
  if (now - shown_ < pause) return;
  const int tenths = static_cast<int>(std::floor(fraction * 10));
  if (!terminal_ && tenths == tenths_shown_) return;
  tenths_shown_ = tenths;
  shown_ = now;
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  std::string line = std::to_string(static_cast<int>(std::floor(fraction * 100))) + " %, " + text();
  if (fraction > 0) line += ", " + format_seconds(seconds * (1 - fraction) / fraction) + " left";
  if (!terminal_) {
    std::cerr << line << std::endl;
    return;
  }
  const TerminalSize size = terminal_size(STDERR_FILENO);
  if (size.columns >= 80) line = progress_bar(fraction, 20) + " " + line;
  screen_.show({clip(line, size.columns - 1)});
}

void ProgressLine::clear() {
  if (terminal_) screen_.show({});
}

}  // namespace pipewright::cli
