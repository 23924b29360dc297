#include "client/cli/view/live.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "client/cli/view/text.hpp"
#include "core/base/text.hpp"

namespace pipewright::cli {

namespace {

constexpr int plot_rows_max = 20;
constexpr int plot_rows_min = 4;

const Curve& curve_of(const JobView::RunCurves& run, const LiveOptions& options) {
  return options.loss ? run.loss : run.main();
}

std::string name_of_job(const JobView& view) {
  const Value* name = view.job().spec.find("name");
  const std::string id = "job " + std::to_string(view.job().id);
  return name != nullptr && name->is_text() && !name->as_text().empty()
             ? id + "  " + printable(name->as_text())
             : id;
}

/// Whole up to ten million: "tick 40006 of 80012".
std::string tick_text(double ticks) {
  return std::abs(ticks) < 1e7 ? format_number(ticks) : format_si(ticks);
}

std::string percent(double fraction) {
  return std::to_string(static_cast<int>(std::floor(fraction * 100))) + " %";
}

std::string runs_text(const RunCounts& runs) {
  std::string text = std::to_string(runs.ended()) + " of " + std::to_string(runs.total) + " runs";
  if (runs.failed > 0) text += ", " + std::to_string(runs.failed) + " failed";
  return text;
}

std::string speed_text(const JobView& view) {
  std::string text;
  if (const auto rate = view.steps_per_second()) {
    text += "  " + format_si(*rate) + (view.many() ? " runs/s" : " ticks/s");
  }
  if (const auto left = view.seconds_left()) text += "  " + format_seconds(*left) + " left";
  return text;
}

std::string values_text(const JobView& view, const LiveOptions& options) {
  const Curve& curve = curve_of(view.shown(), options);
  if (curve.empty()) return "no point yet";
  std::string text = options.loss ? "last-stage loss" : view.main_name();
  if (view.many()) text = "best: run " + std::to_string(*view.best_run()) + ", " + text;
  text += " " + format_short(curve.newest()->y, 6) + " at tick " + tick_text(curve.newest()->x);
  if (curve.best()) text += "   best " + format_short(curve.best()->y, 6);
  if (const auto updates = view.shown().updates; updates > 0) {
    text += "   " + std::to_string(updates) + " updates";
  }
  return text;
}

std::string title(const JobView& view, const LiveOptions& options) {
  const Job& job = view.job();
  std::string text = name_of_job(view) + "  " + state_text(job.state, options.colors);
  if (job.state == JobState::queued) {
    text += "  " + (job.waits.empty() ? "waits for ranks" : printable(job.waits));
  }
  if (job.attempt > 1) text += "  attempt " + std::to_string(job.attempt);
  if (!job.message.empty()) text += "  " + printable(job.message);
  return text;
}

void append_one(std::vector<std::string>& lines, const JobView& view, TerminalSize size,
                const LiveOptions& options) {
  const Progress& progress = view.job().progress;
  std::string status = "  " + percent(view.fraction_done());
  if (view.many()) {
    status += "  " + runs_text(progress.runs);
  } else if (progress.ticks_total > 0) {
    const auto done =
        view.job().state == JobState::succeeded ? progress.ticks_total : progress.ticks_done;
    status += "  tick " + tick_text(static_cast<double>(done)) + " of " +
              tick_text(static_cast<double>(progress.ticks_total));
  }
  status += speed_text(view);
  // The bar takes what the text leaves, in steps, so that it does not tremble with the text.
  const int room = size.columns - 1 - std::max(48, display_width(status));
  const std::string bar = room >= 6 ? progress_bar(view.fraction_done(), std::min(room, 40)) : "";
  lines.push_back(bar + (bar.empty() ? status.substr(2) : status));
  lines.push_back(values_text(view, options));
}

void append_compact(std::vector<std::string>& lines, const JobView& view, std::size_t index,
                    const LiveOptions& options) {
  const std::string mark = options.colors ? curve_color(index) + "●\x1b[0m " : "● ";
  std::string text = mark + title(view, options) + "  " + percent(view.fraction_done());
  lines.push_back(text + speed_text(view));
  lines.push_back("  " + values_text(view, options));
}

std::vector<std::string> picture(std::span<const JobView> jobs, TerminalSize size, int rows,
                                 const LiveOptions& options) {
  std::vector<std::vector<PlotPoint>> points;
  std::vector<PlotCurve> curves;
  // Of many jobs one curve each, so that the colours are those of the list below.
  for (const JobView& view : jobs) {
    if (jobs.size() == 1 && view.many()) {
      for (const auto& [run, curves] : view.curves()) {
        points.push_back(curve_of(curves, options).points());
      }
    } else {
      points.push_back(curve_of(view.shown(), options).points());
    }
  }
  for (const auto& some : points) curves.push_back({some});
  const bool any =
      std::any_of(points.begin(), points.end(), [](const auto& p) { return !p.empty(); });
  if (!any || rows < plot_rows_min) return {};
  return plot(curves, {.columns = size.columns - 1, .rows = std::min(rows, plot_rows_max)},
              {.log_y = options.log_y, .colors = options.colors, .x_label = "ticks"});
}

}  // namespace

std::string state_text(JobState state, bool colors) {
  const std::string name(name_of(state));
  if (!colors) return name;
  constexpr std::array<int, 7> color{0, 2, 36, 36, 32, 31, 33};
  return "\x1b[" + std::to_string(color[static_cast<std::size_t>(state)]) + "m" + name + "\x1b[0m";
}

std::string progress_bar(double fraction, int columns) {
  constexpr std::array<const char*, 8> parts{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = static_cast<int>(std::floor(std::clamp(fraction, 0.0, 1.0) * columns * 8));
  std::string bar;
  for (int i = 0; i < eighths / 8; ++i) bar += "█";
  bar += parts[static_cast<std::size_t>(eighths % 8)];
  for (int i = (eighths + 7) / 8; i < columns; ++i) bar += "░";
  return bar;
}

std::vector<std::string> draw_live(std::span<const JobView> jobs, TerminalSize size,
                                   const LiveOptions& options) {
  std::vector<std::string> below;
  if (jobs.size() == 1) {
    append_one(below, jobs.front(), size, options);
  } else {
    for (std::size_t i = 0; i < jobs.size(); ++i) append_compact(below, jobs[i], i, options);
  }
  for (const JobView& view : jobs) {
    if (!view.note.empty()) below.push_back(printable(view.note));
  }
  std::vector<std::string> lines;
  if (jobs.size() == 1) lines.push_back(title(jobs.front(), options));
  const int room = size.rows - 1 - static_cast<int>(lines.size() + below.size());
  for (std::string& line : picture(jobs, size, room, options)) lines.push_back(std::move(line));
  lines.insert(lines.end(), below.begin(), below.end());
  if (const int most = std::max(1, size.rows - 1); static_cast<int>(lines.size()) > most) {
    lines.resize(static_cast<std::size_t>(most));
  }
  for (std::string& line : lines) line = clip(line, size.columns - 1);
  return lines;
}

}  // namespace pipewright::cli
