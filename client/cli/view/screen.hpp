// A terminal: what it can show, a block of lines that is redrawn in place at its bottom, and the
// whole of it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "client/cli/view/live.hpp"

namespace pipewright::cli {

bool is_terminal(int fd);
/// What --color says of all output: "auto" (a terminal, and NO_COLOR is not set), "always",
/// "never".
void set_color_choice(const std::string& choice);
/// Whether to use colours there.
bool wants_colors(int fd);
/// Whether the locale of the environment (LC_ALL, LC_CTYPE, LANG) has UTF-8, as every terminal does
/// for which none of them says otherwise.
bool wants_utf8();
TerminalLook terminal_look(int fd);
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

/// The whole terminal, as long as this lives: its other screen, without a cursor, keys as they are
/// pressed. What was there comes back when this goes, also on signals by which a program crashes.
/// One at a time.
class FullScreen {
 public:
  /// What is drawn goes to `fd`. Null when keys cannot be read: the process has no terminal of its
  /// own, or is in its background.
  static std::unique_ptr<FullScreen> open(int fd);
  ~FullScreen();
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;

  /// Where keys come from; not blocking.
  int keys_fd() const { return keys_; }
  void show(const std::vector<std::string>& lines);
  /// Gives the terminal back, stops this process as Ctrl-Z asks for, and takes it again.
  void suspend();

 private:
  FullScreen(int fd, int keys);
  void enter();
  void leave();

  int fd_, keys_;
  std::vector<std::string> shown_;
  TerminalSize shown_size_;
};

/// The escape sequences and text that turn a screen with the lines `shown` into one with `lines`,
/// each at its row. `anew`: whatever is there.
std::string repaint(std::span<const std::string> shown, std::span<const std::string> lines,
                    bool anew);

/// The escape sequences and text that replace `shown` by `lines` on a terminal that is `columns`
/// wide now: lines of `shown` that are wider have been wrapped by it. Lines that are the same stay.
std::string redraw(std::span<const std::string> shown, std::span<const std::string> lines,
                   int columns);

}  // namespace pipewright::cli
