#include "client/cli/figure/gantt.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include "client/cli/view/plot.hpp"
#include "client/cli/view/text.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace pipewright::cli {

namespace {

// All lengths in pixels.
constexpr double row_height = 26, row_gap = 5, top = 14, right = 18, bottom = 74;
constexpr double tick_width_max = 26;
constexpr double chart_width_max = 1400, chart_width_min = 420;
constexpr double letter_width = 6.2, digit_width = 5.7;  // in the legend, and in boxes
/// A box without length (an update that takes no time) is a line of this width.
constexpr double line_width = 2;

struct Paint {
  std::array<const char*, 3> fill;  // by replica
  const char* text;
};

const Paint& paint_of(ActionKind kind) {
  static constexpr Paint forward{{"#4c9bd1", "#8fc1e3", "#2b78ad"}, "#06263d"};
  static constexpr Paint backward{{"#f0a04b", "#f7c88f", "#d9822b"}, "#402200"};
  static constexpr Paint update{{"#3c3c3c", "#3c3c3c", "#3c3c3c"}, "#ffffff"};
  static constexpr Paint sync{{"#00795a", "#00795a", "#00795a"}, "#ffffff"};
  switch (kind) {
    case ActionKind::forward:
      return forward;
    case ActionKind::backward:
      return backward;
    case ActionKind::update:
      return update;
    case ActionKind::sync:
      break;
  }
  return sync;
}

std::string number(double value) {
  return format_short(std::round(value * 100) / 100, 7);
}

std::string attribute(const char* name, double value) {
  return std::string(" ") + name + "=\"" + number(value) + "\"";
}

std::string rectangle(double x, double y, double width, double height, const char* fill,
                      const std::string& inside = {}) {
  const std::string tag = "<rect" + attribute("x", x) + attribute("y", y) +
                          attribute("width", width) + attribute("height", height) + " fill=\"" +
                          fill + "\"";
  return inside.empty() ? tag + "/>\n" : tag + ">" + inside + "</rect>\n";
}

/// `text` is ours or a number: it needs no escaping.
std::string words(double x, double y, const char* more, const std::string& text) {
  return "<text" + attribute("x", x) + attribute("y", y) + more + ">" + text + "</text>\n";
}

std::string line(double x1, double y1, double x2, double y2, const char* more) {
  return "<line" + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) +
         attribute("y2", y2) + more + "/>\n";
}

class Chart {
 public:
  Chart(const Timeline& timeline, const GanttOptions& options)
      : timeline_(timeline),
        options_(options),
        ticks_(
            static_cast<double>(std::max<std::int64_t>(1, options.to.value - options.from.value))),
        width_(std::clamp(ticks_ * tick_width_max, chart_width_min, chart_width_max)),
        left_(timeline.header.placement == Placement::spread ? 150 : 74) {
    // All boxes of a width are labelled or none: a number more would not tell them apart.
    std::int64_t last = 0;
    for (const TimelineEntry& entry : timeline.entries) {
      last = std::max(last, entry.action.microbatch.value);
    }
    label_width_ = static_cast<double>(std::to_string(last).size()) * digit_width + 2;
  }

  std::string svg() const {
    const int rows = timeline_.header.rows();
    const double height = y_of(Row(rows)) + bottom;
    const double width = left_ + width_ + right;
    std::string text = "<svg xmlns=\"http://www.w3.org/2000/svg\"" + attribute("width", width) +
                       attribute("height", height) + " viewBox=\"0 0 " + number(width) + " " +
                       number(height) +
                       "\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n" +
                       rectangle(0, 0, width, height, "#ffffff");
    for (int row = 0; row < rows; ++row) text += row_background(Row(row));
    text += time_axis(y_of(Row(rows)));
    for (const TimelineEntry& entry : timeline_.entries) {
      if (entry.start < entry.end) text += box(entry);
    }
    // Updates that take no time lie on the edges of boxes, so they come after these.
    for (const TimelineEntry& entry : timeline_.entries) {
      if (entry.start == entry.end) text += box(entry);
    }
    if (options_.messages) text += messages();
    return text + legend(y_of(Row(rows)) + 56) + "</svg>\n";
  }

 private:
  double x_of(Tick tick) const {
    const auto after = static_cast<double>(tick.value - options_.from.value);
    return left_ + std::clamp(after / ticks_, 0.0, 1.0) * width_;
  }
  static double y_of(Row row) { return top + row.value * (row_height + row_gap); }

  std::string row_background(Row row) const {
    const ScheduleHeader& header = timeline_.header;
    std::string name = "stage " + std::to_string(header.stage_of(row).value);
    if (header.placement == Placement::spread) {
      name = "replica " + std::to_string(header.first_replica_of(row).value) + ", " + name;
    }
    return rectangle(left_, y_of(row), width_, row_height, "#eeeeee") +
           words(left_ - 8, y_of(row) + row_height / 2 + 4, " text-anchor=\"end\"", name);
  }

  std::string time_axis(double y) const {
    const char* ink = " stroke=\"#404040\"";
    std::string text = line(left_, y, left_ + width_, y, ink);
    const double unit = unit_of_axis();
    const auto low = static_cast<double>(options_.from.value) / unit;
    for (const double tick :
         axis_ticks(low, low + ticks_ / unit, false, static_cast<int>(width_ / 70))) {
      const double x = left_ + (tick - low) * unit / ticks_ * width_;
      text += line(x, y, x, y + 5, ink) +
              words(x, y + 18, " text-anchor=\"middle\"", format_short(tick, 8));
    }
    const std::string title =
        options_.in_durations ? "time (" + std::string(name_of_unit()) + ")" : "time (ticks)";
    return text + words(left_ + width_ / 2, y + 36, " text-anchor=\"middle\"", title);
  }

  struct Unit {
    double ticks;
    const char* name;
  };
  const Unit& unit() const {
    static constexpr std::array<Unit, 4> units{{{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}, {1, "ns"}}};
    if (!options_.in_durations) return units.back();
    return *std::find_if(units.begin(), units.end() - 1,
                         [this](const Unit& one) { return ticks_ >= 5 * one.ticks; });
  }
  double unit_of_axis() const { return unit().ticks; }
  const char* name_of_unit() const { return unit().name; }

  std::string label_of(const Action& action) const {
    return action.label(timeline_.header.replicas > 1);
  }

  std::string time_text(Tick tick) const {
    return options_.in_durations ? format_duration_ns(tick.value) : std::to_string(tick.value);
  }

  std::string box(const TimelineEntry& entry) const {
    const ActionKind kind = entry.action.kind;
    const Paint& paint = paint_of(kind);
    const std::size_t shade =
        timeline_.header.replicas_of_row() > 1
            ? static_cast<std::size_t>(entry.action.replica.value) % paint.fill.size()
            : 0;
    const std::string tooltip = "<title>" + label_of(entry.action) + ": " + time_text(entry.start) +
                                " to " + time_text(entry.end) + "</title>";
    const double x = x_of(entry.start), y = y_of(entry.row);
    if (entry.start == entry.end) {
      // A sync is a barrier over the whole row, an update a mark at its lower edge.
      const double height = kind == ActionKind::sync ? row_height : row_height / 3;
      const double from = std::max(left_, x - line_width / 2);
      return rectangle(from, y + row_height - height, line_width, height, paint.fill[shade],
                       tooltip);
    }
    // A hairline of the background keeps neighbours apart while they are wide enough for it.
    const double whole = x_of(entry.end) - x;
    const double width = whole > 4 ? whole - 0.8 : whole;
    std::string text = rectangle(x, y, width, row_height, paint.fill[shade], tooltip);
    if (label_width_ <= width) {
      text += "<text" + attribute("x", x + width / 2) + attribute("y", y + row_height / 2 + 4) +
              " text-anchor=\"middle\" font-size=\"10\" pointer-events=\"none\" fill=\"" +
              paint.text + "\">" + std::to_string(entry.action.microbatch.value) + "</text>\n";
    }
    return text;
  }

  /// From the end of each F (B) to the start of the same microbatch's F (B) on the next (previous)
  /// stage: flight, and waiting if the receiver was busy.
  std::string messages() const {
    using Key = std::tuple<ActionKind, std::int32_t, std::int64_t, std::int32_t>;
    std::map<Key, const TimelineEntry*> sent;
    std::string text;
    for (const TimelineEntry& entry : timeline_.entries) {
      const Action& action = entry.action;
      const bool forward = action.kind == ActionKind::forward;
      if (!forward && action.kind != ActionKind::backward) continue;
      const auto key = [&](std::int32_t stage) {
        return Key{action.kind, stage, action.microbatch.value, action.replica.value};
      };
      sent[key(action.stage.value)] = &entry;
      const auto sender = sent.find(key(action.stage.value + (forward ? -1 : 1)));
      if (sender == sent.end() || entry.start <= sender->second->end) continue;
      const bool down = sender->second->row < entry.row;
      text += line(x_of(sender->second->end), y_of(sender->second->row) + (down ? row_height : 0),
                   x_of(entry.start), y_of(entry.row) + (down ? 0 : row_height),
                   forward ? " stroke=\"#2b78ad\" stroke-width=\"0.9\""
                           : " stroke=\"#c06a10\" stroke-width=\"0.9\"");
    }
    return text;
  }

  std::string legend(double y) const {
    std::vector<std::pair<std::string, const char*>> parts;
    for (const auto& [kind, name] : {std::pair{ActionKind::forward, "forward"},
                                     {ActionKind::backward, "backward"},
                                     {ActionKind::update, "update"},
                                     {ActionKind::sync, "sync"}}) {
      const bool shown = std::any_of(
          timeline_.entries.begin(), timeline_.entries.end(),
          [kind = kind](const TimelineEntry& entry) { return entry.action.kind == kind; });
      if (shown) parts.emplace_back(name, paint_of(kind).fill[0]);
    }
    parts.emplace_back("idle", "#eeeeee");
    std::string text;
    double x = left_;
    for (const auto& [name, fill] : parts) {
      text += rectangle(x, y - 10, 12, 12, fill) + words(x + 17, y, "", name);
      x += 34 + static_cast<double>(name.size()) * letter_width;
    }
    return text;
  }

  const Timeline& timeline_;
  const GanttOptions& options_;
  double ticks_;
  double width_;
  double left_;
  double label_width_;
};

}  // namespace

std::string gantt_svg(const Timeline& timeline, const GanttOptions& options) {
  if (timeline.entries.size() > gantt_boxes_max) {
    throw ConfigError("the chart would have more than " + std::to_string(gantt_boxes_max) +
                      " boxes; show a part of the time with --from TICK and --to TICK");
  }
  return Chart(timeline, options).svg();
}

}  // namespace pipewright::cli
