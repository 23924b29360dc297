#include "client/cli/view/screen.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "client/cli/view/text.hpp"

namespace pipewright::cli {

bool is_terminal(int fd) {
  const char* term = std::getenv("TERM");
  return ::isatty(fd) == 1 && (term == nullptr || std::string_view(term) != "dumb");
}

namespace {

std::string color_choice = "auto";

std::string_view env(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;  // the terminal has gone; what is followed goes on to its end
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace

void set_color_choice(const std::string& choice) {
  color_choice = choice;
}

bool wants_colors(int fd) {
  if (color_choice != "auto") return color_choice == "always";
  return is_terminal(fd) && env("NO_COLOR").empty();
}

bool wants_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string value(env(name));
    if (value.empty()) continue;
    std::transform(value.begin(), value.end(), value.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return true;
}

TerminalLook terminal_look(int fd) {
  return {.colors = wants_colors(fd), .utf8 = wants_utf8()};
}

TerminalSize terminal_size(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {.columns = size.ws_col, .rows = size.ws_row};
}

int table_columns(int fd) {
  return is_terminal(fd) ? terminal_size(fd).columns : 0;
}

std::string redraw(std::span<const std::string> shown, std::span<const std::string> lines,
                   int columns) {
  int rows_up = 0;
  bool wrapped = false;
  for (const std::string& line : shown) {
    const int rows = std::max(1, (display_width(line) + columns - 1) / std::max(1, columns));
    wrapped = wrapped || rows > 1;
    rows_up += rows;
  }
  std::string out = "\r";
  if (rows_up > 0) out += "\x1b[" + std::to_string(rows_up) + "A";
  if (wrapped) out += "\x1b[J";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool same = !wrapped && i < shown.size() && shown[i] == lines[i];
    if (!same) out += lines[i] + "\x1b[K";
    out += "\r\n";
  }
  return out + "\x1b[J";
}

void Screen::show(const std::vector<std::string>& lines) {
  const std::string bytes = redraw(shown_, lines, terminal_size(fd_).columns);
  write_all(fd_, bytes);
  shown_ = lines;
}

std::string repaint(std::span<const std::string> shown, std::span<const std::string> lines,
                    bool anew) {
  std::string out = anew ? "\x1b[H\x1b[2J" : "";
  const std::size_t rows = std::max(shown.size(), lines.size());
  for (std::size_t i = 0; i < rows; ++i) {
    const std::string_view line = i < lines.size() ? std::string_view(lines[i]) : "";
    const std::string_view before = !anew && i < shown.size() ? std::string_view(shown[i]) : "";
    if (line == before) continue;
    out += "\x1b[" + std::to_string(i + 1) + ";1H";
    out += line;
    out += "\x1b[K";
  }
  return out;
}

namespace {

constexpr std::string_view enter_sequence = "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J";
constexpr std::string_view leave_sequence = "\x1b[0m\x1b[?25h\x1b[?1049l";
constexpr std::array<int, 5> crashes{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

/// What a handler of signals needs to give the terminal back.
struct Taken {
  int fd = -1, keys = -1;
  termios before{};
};
Taken taken;

void on_crash(int number) {
  if (taken.fd >= 0) {
    [[maybe_unused]] const ssize_t count =
        ::write(taken.fd, leave_sequence.data(), leave_sequence.size());
    ::tcsetattr(taken.keys, TCSANOW, &taken.before);
  }
  ::raise(number);  // its handler is the default again (SA_RESETHAND)
}

void handle_crashes(bool here) {
  struct sigaction action {};
  action.sa_handler = here ? on_crash : SIG_DFL;
  action.sa_flags = here ? static_cast<int>(SA_RESETHAND) | SA_NODEFER : 0;
  for (const int number : crashes) ::sigaction(number, &action, nullptr);
}

}  // namespace

std::unique_ptr<FullScreen> FullScreen::open(int fd) {
  // Opened anew: not to block there must not change what other programs have of the terminal.
  const int keys = ::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  if (keys < 0) return nullptr;
  termios mode{};
  if (::tcgetpgrp(keys) != ::getpgrp() || ::tcgetattr(keys, &mode) != 0) {
    ::close(keys);
    return nullptr;
  }
  return std::unique_ptr<FullScreen>(new FullScreen(fd, keys));
}

FullScreen::FullScreen(int fd, int keys) : fd_(fd), keys_(keys) {
  enter();
}

FullScreen::~FullScreen() {
  leave();
  ::close(keys_);
}

void FullScreen::enter() {
  taken = {.fd = fd_, .keys = keys_};
  ::tcgetattr(keys_, &taken.before);
  handle_crashes(true);
  termios mode = taken.before;
  mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);  // Ctrl-C and Ctrl-Z stay signals
  mode.c_cc[VMIN] = 1;
  mode.c_cc[VTIME] = 0;
  ::tcsetattr(keys_, TCSADRAIN, &mode);
  write_all(fd_, enter_sequence);
  shown_.clear();
}

void FullScreen::leave() {
  write_all(fd_, leave_sequence);
  ::tcsetattr(keys_, TCSAFLUSH, &taken.before);  // keys that nobody took are not for the shell
  handle_crashes(false);
  taken = {};
}

void FullScreen::show(const std::vector<std::string>& lines) {
  const TerminalSize size = terminal_size(fd_);
  const bool anew = size.columns != shown_size_.columns || size.rows != shown_size_.rows;
  write_all(fd_, repaint(shown_, lines, anew));
  shown_ = lines;
  shown_size_ = size;
}

void FullScreen::suspend() {
  leave();
  ::raise(SIGSTOP);
  enter();
  shown_size_ = {.columns = 0, .rows = 0};
}

}  // namespace pipewright::cli
