// How far something is that takes longer than a moment, on standard error: a line that is redrawn
// on a terminal and taken off it at the end; else a line at every tenth, but not more often than
// every two seconds.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "client/cli/view/screen.hpp"
#include "core/train/run_control.hpp"

namespace pipewright::cli {

class ProgressLine : public RunSink {
 public:
  ProgressLine();
  ~ProgressLine() override { clear(); }

  void loss(Tick, Microbatch, double value) override { loss_ = value; }
  void objective(Tick, UpdateCount, double value) override { objective_ = value; }
  /// Called as often as one likes.
  void update(const RunControl& control);
  /// The same with a text of one's own; what is left is told from `fraction`, if that is known.
  /// Without it nothing is written where there is no terminal.
  void update(std::optional<double> fraction, const std::function<std::string()>& text);
  /// Takes the line off the terminal.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  bool terminal_, utf8_;
  bool drawn_ = false;
  Screen screen_;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point shown_ = begin_;
  int tenths_shown_ = 0;
  std::optional<double> objective_, loss_;
};

}  // namespace pipewright::cli
