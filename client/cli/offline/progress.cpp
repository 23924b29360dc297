#include "client/cli/offline/progress.hpp"

#include <unistd.h>

#include <cmath>
#include <iostream>
#include <utility>

#include "client/cli/view/text.hpp"

namespace pipewright::cli {

ProgressLine::ProgressLine()
    : terminal_(is_terminal(STDERR_FILENO)), utf8_(wants_utf8()), screen_(STDERR_FILENO) {}

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

void ProgressLine::update(std::optional<double> fraction,
                          const std::function<std::string()>& text) {
  using std::chrono::milliseconds;
  // What is over in a moment is not worth a flicker.
  const auto pause = !terminal_ ? milliseconds(2000)
                     : drawn_   ? milliseconds(100)
                                : milliseconds(500);
  const Clock::time_point now = Clock::now();
  if (now - shown_ < pause || (!terminal_ && !fraction)) return;
  const int tenths = static_cast<int>(std::floor(fraction.value_or(0) * 10));
  if (!terminal_ && tenths == tenths_shown_) return;
  tenths_shown_ = tenths;
  shown_ = now;
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  std::string line = text();
  if (fraction) {
    line = std::to_string(static_cast<int>(std::floor(*fraction * 100))) + " %, " + line;
    if (*fraction > 0) {
      line += ", " + format_seconds(seconds * (1 - *fraction) / *fraction) + " left";
    }
  } else {
    line += ", " + format_seconds(seconds);
  }
  if (!terminal_) {
    std::cerr << line << std::endl;
    return;
  }
  const TerminalSize size = terminal_size(STDERR_FILENO);
  if (fraction && size.columns >= 80) line = progress_bar(*fraction, 20) + " " + line;
  line = clip(line, size.columns - 1);
  screen_.show({utf8_ ? line : to_ascii(line)});
  drawn_ = true;
}

void ProgressLine::clear() {
  if (std::exchange(drawn_, false)) screen_.show({});
}

}  // namespace pipewright::cli
