#include "client/cli/view/live.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "client/cli/view/range.hpp"
#include "client/cli/view/smooth.hpp"
#include "client/cli/view/table.hpp"
#include "client/cli/view/text.hpp"
#include "core/base/text.hpp"

namespace pipewright::cli {

namespace {

constexpr int plot_rows_min = 4;

const JobView::RunCurves& curves_of(const WatchEntry& entry) {
  static const JobView::RunCurves none;
  if (!entry.run) return entry.job->shown();
  const auto at = entry.job->curves().find(*entry.run);
  return at == entry.job->curves().end() ? none : at->second;
}

Series series_of(const WatchEntry& entry, const WatchSettings& settings) {
  return settings.series.value_or(curves_of(entry).main());
}

JobState state_of(const WatchEntry& entry) {
  const bool own = entry.run && entry.job->many();
  return own && !is_final(entry.job->job().state)  ? curves_of(entry).state
         : own && is_final(curves_of(entry).state) ? curves_of(entry).state
                                                   : entry.job->job().state;
}

/// A run of many keeps the colour of its number, whichever others are kept.
std::size_t style_of(const WatchEntry& entry, std::size_t index, bool single_job) {
  return single_job && entry.run ? *entry.run % curve_colors : index;
}

std::string job_name_of(const JobView& view) {
  const Value* name = view.job().spec.find("name");
  return name != nullptr && name->is_text() ? printable(name->as_text()) : std::string();
}

std::string id_of(const WatchEntry& entry) {
  const std::string id = std::to_string(entry.job->job().id);
  return entry.run && entry.job->many() ? id + "." + std::to_string(*entry.run) : id;
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

std::string values_text(const JobView& view, const WatchSettings& settings) {
  const Series series = settings.series.value_or(view.shown().main());
  const Curve& curve = view.shown().of(series);
  if (curve.empty()) return "no point of the " + std::string(title_of(series)) + " yet";
  std::string text(title_of(series));
  if (view.many()) text = "best: run " + std::to_string(*view.best_run()) + ", " + text;
  text +=
      " " + format_short(curve.newest()->value, 6) + " at tick " + tick_text(curve.newest()->tick);
  if (curve.best()) text += "   best " + format_short(curve.best()->value, 6);
  if (const auto updates = view.shown().updates; updates > 0) {
    text += "   " + std::to_string(updates) + " updates";
  }
  return text;
}

std::string title(const JobView& view, bool colors) {
  const Job& job = view.job();
  std::string text = "job " + std::to_string(job.id);
  if (const std::string name = job_name_of(view); !name.empty()) text += "  " + name;
  text += "  " + state_text(job.state, colors);
  if (job.state == JobState::queued) {
    text += "  " + (job.waits.empty() ? "waits for ranks" : printable(job.waits));
  }
  if (job.attempt > 1) text += "  attempt " + std::to_string(job.attempt);
  if (!job.message.empty()) text += "  " + printable(job.message);
  return text;
}

void append_one(std::vector<std::string>& lines, const JobView& view, TerminalSize size,
                const WatchSettings& settings) {
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
  lines.push_back(values_text(view, settings));
}

std::string mark_text(std::size_t style, bool hidden, TerminalLook look, bool marks) {
  if (hidden) return "○";
  const std::string mark = marks ? std::string(1, curve_mark(style)) : "●";
  return look.colors ? curve_color(style) + mark + "\x1b[0m" : mark;
}

/// The rows of the legend that there is room for, the cursor among them.
std::vector<std::string> legend(std::span<const WatchEntry> entries, bool single_job,
                                TerminalSize size, int rows_max, const WatchSettings& settings,
                                TerminalLook look, bool keys) {
  const bool marks = !look.colors || !look.utf8;
  const bool wide = size.columns >= 72;
  std::vector<Column> columns{{""}, {"RUN", Align::right}, {"STATE"}, {"DONE", Align::right}};
  if (wide) columns.push_back({"LEFT", Align::right});
  columns.push_back({"VALUE", Align::right});
  if (wide) columns.push_back({"BEST", Align::right});
  columns.push_back({.title = "NAME", .shrinks = true});
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const WatchEntry& entry = entries[i];
    const Series series = series_of(entry, settings);
    const Curve& curve = curves_of(entry).of(series);
    const bool of_run = entry.run && entry.job->many();
    const auto value = [](const std::optional<CurvePoint>& point) {
      return point ? format_short(point->value, 5) : std::string("-");
    };
    const std::string cursor = !keys ? "" : i == settings.cursor ? "▸" : " ";
    const auto left = entry.job->seconds_left();
    std::vector<std::string> row{cursor + mark_text(style_of(entry, i, single_job),
                                                    settings.hidden.contains(i), look, marks),
                                 id_of(entry), state_text(state_of(entry), look.colors),
                                 of_run ? "-" : percent(entry.job->fraction_done())};
    if (wide) row.push_back(left && !of_run ? format_seconds(*left) : "-");
    row.push_back(value(curve.newest()));
    if (wide) row.push_back(value(curve.best()));
    std::string name(settings.series || series == Series::objective ? "" : title_of(series));
    if (const std::string own = job_name_of(*entry.job); !own.empty()) {
      name = own + (name.empty() ? "" : ", " + name);
    }
    row.push_back(name);
    rows.push_back(std::move(row));
  }
  const std::string table = format_table(columns, rows, size.columns - 1);
  std::vector<std::string> lines;
  for (const std::string_view line :
       split(std::string_view(table).substr(0, table.size() - 1), '\n')) {
    lines.emplace_back(line);
  }
  const int entries_max = std::max(1, rows_max - 1);
  const int count = static_cast<int>(entries.size());
  if (count <= entries_max) return lines;
  const int cursor = std::min(static_cast<int>(settings.cursor), count - 1);
  const int begin = std::clamp(cursor - entries_max / 2, 0, count - entries_max);
  lines.erase(lines.begin() + 1 + begin + entries_max, lines.end());
  lines.erase(lines.begin() + 1, lines.begin() + 1 + begin);
  lines.front() += "  (" + std::to_string(entries_max) + " of " + std::to_string(count) + ")";
  return lines;
}

std::string axes_text(const WatchSettings& settings, std::span<const WatchEntry> entries) {
  std::string series = settings.series ? std::string(title_of(*settings.series)) : std::string();
  for (const WatchEntry& entry : entries) {
    if (settings.series) break;
    const std::string own(title_of(series_of(entry, settings)));
    if (series.find(own) == std::string::npos) series += (series.empty() ? "" : " / ") + own;
  }
  std::string text = series + (settings.log_y ? " (log)" : "") + " over " +
                     std::string(unit_of(settings.x)) + (settings.log_x ? " (log)" : "");
  if (settings.smoothing > 0) text += ", smoothing " + std::to_string(settings.smoothing);
  if (settings.x_tail < 1) text += ", last " + percent(settings.x_tail);
  return text;
}

/// Empty where no entry that is shown has a point.
std::vector<std::string> picture(std::span<const WatchEntry> entries, bool single_job,
                                 PlotSize size, const WatchSettings& settings, TerminalLook look) {
  if (size.rows < plot_rows_min) return {};
  std::vector<std::vector<PlotPoint>> lines;
  std::vector<std::size_t> styles;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (settings.hidden.contains(i)) continue;
    const WatchEntry& entry = entries[i];
    lines.push_back(entry.job->line(curves_of(entry), series_of(entry, settings), settings.x));
    styles.push_back(style_of(entry, i, single_job));
    if (settings.smoothing == 0 || lines.back().empty()) continue;
    const double length = lines.back().back().x - lines.back().front().x;
    lines.back() = smoothed(lines.back(), smoothing_width(settings.smoothing, length));
  }
  std::vector<PlotCurve> curves;
  for (std::size_t i = 0; i < lines.size(); ++i) curves.push_back({lines[i], styles[i]});
  if (std::all_of(lines.begin(), lines.end(), [](const auto& line) { return line.empty(); })) {
    return {};
  }
  return plot(curves, size,
              {.log_y = settings.log_y,
               .log_x = settings.log_x,
               .x_tail = settings.x_tail,
               .colors = look.colors,
               .marks = !look.utf8 || (!look.colors && entries.size() > 1),
               .mark_faults = true,
               .x_label = std::string(unit_of(settings.x))});
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

std::vector<WatchEntry> entries_of(std::span<const JobView> jobs) {
  std::vector<WatchEntry> entries;
  for (const JobView& job : jobs) {
    for (const std::uint32_t run : job.chosen()) entries.push_back({&job, run});
    if (!job.chosen().empty()) continue;
    // Of several jobs one curve each, so that they can be compared.
    if (jobs.size() > 1 || !job.many() || job.curves().empty()) {
      entries.push_back({&job, std::nullopt});
      continue;
    }
    for (const auto& [run, curves] : job.curves()) entries.push_back({&job, run});
  }
  return entries;
}

WatchContent content_of(std::span<const JobView> jobs) {
  const auto entries = entries_of(jobs);
  WatchContent content{.entries = entries.size(), .series = {}};
  for (const Series series :
       {Series::objective, Series::last_stage_loss, Series::validation, Series::gradient_norm_sq,
        Series::gradient_norm_sq_mean, Series::bound, Series::gap}) {
    if (std::any_of(entries.begin(), entries.end(), [&](const WatchEntry& entry) {
          return !curves_of(entry).of(series).empty();
        })) {
      content.series.push_back(series);
    }
  }
  return content;
}

std::vector<std::string> draw_live(std::span<const JobView> jobs, TerminalSize size,
                                   const WatchSettings& settings, TerminalLook look, bool keys) {
  const std::vector<WatchEntry> entries = entries_of(jobs);
  const bool single_job = jobs.size() == 1;
  std::vector<std::string> below;
  if (single_job && jobs.front().chosen().empty()) append_one(below, jobs.front(), size, settings);
  if (entries.size() > 1 || !jobs.front().chosen().empty()) {
    const int rows = std::max(2, size.rows / 3);
    for (std::string& line : legend(entries, single_job, size, rows, settings, look, keys)) {
      below.push_back(std::move(line));
    }
  }
  for (const JobView& view : jobs) {
    if (!view.note.empty()) {
      const std::string of = single_job ? "" : "job " + std::to_string(view.job().id) + ": ";
      below.push_back("not live: " + of + printable(view.note));
    }
  }
  if (keys) below.push_back(watch_keys(size.columns - 1, entries.size()));
  std::vector<std::string> lines;
  if (single_job) lines.push_back(title(jobs.front(), look.colors));
  lines.push_back(axes_text(settings, entries));
  const int room = size.rows - 1 - static_cast<int>(lines.size() + below.size());
  auto drawn =
      picture(entries, single_job, {.columns = size.columns - 1, .rows = room}, settings, look);
  std::move(drawn.begin(), drawn.end(), std::back_inserter(lines));
  const std::size_t most = static_cast<std::size_t>(std::max(1, size.rows - 1));
  // What is live and how to get out goes before the picture's frame.
  if (lines.size() + below.size() > most) {
    lines.resize(most > below.size() ? most - below.size() : 0);
    below.erase(below.begin(), below.end() - static_cast<std::ptrdiff_t>(
                                                 std::min(below.size(), most - lines.size())));
  }
  lines.insert(lines.end(), below.begin(), below.end());
  for (std::string& line : lines) {
    line = clip(line, size.columns - 1);
    if (!look.utf8) line = to_ascii(line);
  }
  return lines;
}

}  // namespace pipewright::cli
