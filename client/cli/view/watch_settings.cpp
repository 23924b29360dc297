#include "client/cli/view/watch_settings.hpp"

#include <algorithm>
#include <array>

#include "client/cli/view/text.hpp"

namespace pipewright::cli {

namespace {

/// The next of "by themselves, then one by one".
std::optional<Series> next_series(const std::optional<Series>& now,
                                  const std::vector<Series>& there) {
  if (there.empty()) return std::nullopt;
  if (!now) return there.front();
  const auto at = std::find(there.begin(), there.end(), *now);
  if (at == there.end()) return there.front();
  return at + 1 == there.end() ? std::nullopt : std::optional(*(at + 1));
}

double next_tail(double now) {
  if (now > 0.6) return 0.5;
  if (now > 0.3) return 0.2;
  return now > 0.1 ? 0.05 : 1;
}

void toggle(std::set<std::size_t>& set, std::size_t entry) {
  if (set.erase(entry) == 0) set.insert(entry);
}

void move(std::size_t& cursor, std::ptrdiff_t by, std::size_t entries) {
  if (entries == 0) return;
  const auto last = static_cast<std::ptrdiff_t>(entries) - 1;
  cursor = static_cast<std::size_t>(
      std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(cursor) + by, 0, last));
}

}  // namespace

void press(WatchSettings& settings, Key key, const WatchContent& content) {
  switch (key) {
    case U'q':
    case U'Q':
      settings.quit = true;
      break;
    case U'x':
      settings.x = static_cast<XAxis>((static_cast<int>(settings.x) + 1) % 4);
      break;
    case U'l':
      settings.log_y = !settings.log_y;
      break;
    case U'L':
      settings.log_x = !settings.log_x;
      break;
    case U's':
    case key::right:
      settings.smoothing = std::min(smoothing_max, settings.smoothing + smoothing_step);
      break;
    case U'S':
    case key::left:
      settings.smoothing = std::max(0, settings.smoothing - smoothing_step);
      break;
    case U'v':
      settings.series = next_series(settings.series, content.series);
      break;
    case U'z':
      settings.x_tail = next_tail(settings.x_tail);
      break;
    case key::up:
    case U'k':
      move(settings.cursor, -1, content.entries);
      break;
    case key::down:
    case U'j':
      move(settings.cursor, 1, content.entries);
      break;
    case U' ':
      if (settings.cursor < content.entries) toggle(settings.hidden, settings.cursor);
      break;
    case U'a':
      settings.hidden.clear();
      break;
    default:
      break;
  }
}

std::string watch_keys(int columns, std::size_t entries) {
  const std::array<std::pair<const char*, bool>, 8> all{{{"q quit", true},
                                                         {"x axis", true},
                                                         {"l/L log y/x", true},
                                                         {"s/S smooth", true},
                                                         {"v series", true},
                                                         {"z tail", true},
                                                         {"↑↓ space hide", entries > 1},
                                                         {"a show all", entries > 1}}};
  std::string line;
  for (const auto& [text, applies] : all) {
    if (!applies) continue;
    const std::string longer = line + (line.empty() ? "" : "  ") + text;
    if (!line.empty() && display_width(longer) > columns) break;
    line = longer;
  }
  return line;
}

std::string_view unit_of(XAxis axis) {
  constexpr std::array<std::string_view, 4> units{"ticks", "updates", "microbatches", "seconds"};
  return units[static_cast<std::size_t>(axis)];
}

}  // namespace pipewright::cli
