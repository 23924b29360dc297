#include "client/cli/view/screen.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "client/cli/view/text.hpp"

namespace pipewright::cli {

bool is_terminal(int fd) {
  const char* term = std::getenv("TERM");
  return ::isatty(fd) == 1 && (term == nullptr || std::string_view(term) != "dumb");
}

bool wants_colors(int fd) {
  const char* no_color = std::getenv("NO_COLOR");
  return is_terminal(fd) && (no_color == nullptr || *no_color == '\0');
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
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t count = ::write(fd_, bytes.data() + sent, bytes.size() - sent);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;  // the terminal has gone; the stream goes on to its end
    sent += static_cast<std::size_t>(count);
  }
  shown_ = lines;
}

}  // namespace pipewright::cli
