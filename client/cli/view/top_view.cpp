#include "client/cli/view/top_view.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "client/cli/view/pools_view.hpp"
#include "client/cli/view/table.hpp"
#include "client/cli/view/text.hpp"
#include "core/base/text.hpp"

namespace pipewright::cli {

double fraction_done(const Job& job) {
  if (job.state == JobState::succeeded) return 1;
  const Progress& progress = job.progress;
  const bool many = progress.runs.total > 1;
  const double done = many ? progress.runs.ended() : static_cast<double>(progress.ticks_done);
  const double total = many ? progress.runs.total : static_cast<double>(progress.ticks_total);
  return total > 0 ? std::clamp(done / total, 0.0, 1.0) : 0;
}

namespace {

double value_of(const Job& job) {
  const auto& value = job.objective_last ? job.objective_last : job.last_stage_loss;
  return value && std::isfinite(*value) ? *value : std::numeric_limits<double>::infinity();
}

/// Running first, then what waits, then what has ended.
int activity_of(const Job& job) {
  if (is_final(job.state)) return 2;
  return job.state == JobState::queued ? 1 : 0;
}

bool comes_before(const Job& a, const Job& b, TopOrder order) {
  switch (order) {
    case TopOrder::activity:
      if (activity_of(a) != activity_of(b)) return activity_of(a) < activity_of(b);
      break;
    case TopOrder::progress:
      if (fraction_done(a) != fraction_done(b)) return fraction_done(a) > fraction_done(b);
      break;
    case TopOrder::value:
      if (value_of(a) != value_of(b)) return value_of(a) < value_of(b);
      break;
    case TopOrder::user:
      if (a.user != b.user) return a.user < b.user;
      break;
    case TopOrder::id:
      break;
  }
  return a.id > b.id;
}

std::string count_text(const TopData& data) {
  std::size_t running = 0, queued = 0, ended = 0;
  for (const Job& job : data.jobs)
    ++(activity_of(job) == 0 ? running : activity_of(job) == 1 ? queued : ended);
  std::size_t ranks = 0, busy = 0;
  for (const PoolInfo& pool : data.pools.pools) {
    ranks += pool.rank_hosts.size();
    busy += static_cast<std::size_t>(std::count_if(pool.rank_jobs.begin(), pool.rank_jobs.end(),
                                                   [](auto id) { return id != 0; }));
  }
  return std::to_string(running) + " running, " + std::to_string(queued) + " waiting, " +
         std::to_string(ended) + " ended shown · " + std::to_string(busy) + " of " +
         std::to_string(ranks) + (ranks == 1 ? " rank busy" : " ranks busy");
}

void append_lines(std::vector<std::string>& lines, const std::string& table) {
  for (const std::string_view line : split(table, '\n')) {
    if (!line.empty()) lines.emplace_back(line);
  }
}

std::string jobs_table(std::span<const Job> jobs, const TopData& data, int columns, bool colors) {
  const bool wide = columns == 0 || columns >= 76;
  std::vector<Column> titles{{"ID", Align::right}, {"STATE"}, {"DONE", Align::right}};
  if (wide) titles.push_back({""});
  titles.push_back({"LEFT", Align::right});
  titles.push_back({"VALUE", Align::right});
  if (wide) titles.push_back({"RANKS", Align::right});
  titles.push_back({.title = "USER", .shrinks = true});
  titles.push_back({.title = "NAME", .shrinks = true});
  std::vector<std::vector<std::string>> rows;
  for (const Job& job : jobs) {
    const double fraction = fraction_done(job), value = value_of(job);
    const auto left = seconds_left(job, data.now_unix_ms);
    const Value* name = job.spec.find("name");
    std::string text = name != nullptr && name->is_text() ? printable(name->as_text()) : "";
    if (job.state == JobState::queued && !job.waits.empty()) {
      text += (text.empty() ? "" : ", ") + printable(job.waits);
    }
    if (!job.message.empty()) text += (text.empty() ? "" : ", ") + printable(job.message);
    std::vector<std::string> row{
        std::to_string(job.id), state_text(job.state, colors),
        std::to_string(static_cast<int>(std::floor(fraction * 100))) + " %"};
    if (wide) row.push_back(progress_bar(fraction, 8));
    row.push_back(left ? format_seconds(*left) : "-");
    row.push_back(std::isfinite(value) ? format_short(value, 5) : "-");
    const bool has_ranks = !is_final(job.state) && !job.ranks.empty();
    if (wide) row.push_back(has_ranks ? std::to_string(job.ranks.size()) : "-");
    row.push_back(printable(job.user));
    row.push_back(text);
    rows.push_back(std::move(row));
  }
  return format_table(titles, rows, columns);
}

}  // namespace

std::optional<double> seconds_left(const Job& job, std::int64_t now_unix_ms) {
  const double fraction = fraction_done(job);
  if (job.state != JobState::running || job.started_unix_ms == 0 || fraction <= 0) {
    return std::nullopt;
  }
  const auto since = static_cast<double>(now_unix_ms - job.started_unix_ms) / 1000;
  if (since < 0) return std::nullopt;
  return since * (1 - fraction) / fraction;
}

void press(TopSettings& settings, Key key, std::size_t jobs) {
  const auto order = [&](TopOrder wanted) {
    settings.reversed = settings.order == wanted && !settings.reversed;
    settings.order = wanted;
  };
  const std::size_t last = jobs == 0 ? 0 : jobs - 1;
  switch (key) {
    case U'q':
    case U'Q':
      settings.quit = true;
      break;
    case U's':
      order(TopOrder::activity);
      break;
    case U'i':
      order(TopOrder::id);
      break;
    case U'p':
      order(TopOrder::progress);
      break;
    case U'v':
      order(TopOrder::value);
      break;
    case U'u':
      order(TopOrder::user);
      break;
    case U'r':
      settings.reversed = !settings.reversed;
      break;
    case U'a':
      settings.all = !settings.all;
      break;
    case key::up:
    case U'k':
      settings.first -= settings.first > 0 ? 1 : 0;
      break;
    case key::down:
    case U'j':
      settings.first = std::min(last, settings.first + 1);
      break;
    case key::page_up:
      settings.first -= std::min<std::size_t>(settings.first, 10);
      break;
    case key::page_down:
      settings.first = std::min(last, settings.first + 10);
      break;
    case key::home:
      settings.first = 0;
      break;
    case key::end:
      settings.first = last;
      break;
    default:
      break;
  }
}

std::vector<std::string> draw_top(const TopData& data, TerminalSize size,
                                  const TopSettings& settings, TerminalLook look, bool keys) {
  std::vector<Job> jobs;
  for (const Job& job : data.jobs) {
    if (settings.all || !is_final(job.state)) jobs.push_back(job);
  }
  std::stable_sort(jobs.begin(), jobs.end(), [&](const Job& a, const Job& b) {
    return settings.reversed ? comes_before(b, a, settings.order)
                             : comes_before(a, b, settings.order);
  });
  std::vector<std::string> lines{data.daemon + " · " + format_local_time(data.now_unix_ms),
                                 count_text(data)};
  if (!data.fault.empty()) lines.push_back("not live: " + printable(data.fault));
  lines.emplace_back();
  if (data.pools.pools.empty()) {
    lines.emplace_back("no pools: jobs wait");
  } else {
    append_lines(lines, format_pools(data.pools, data.now_unix_ms, size.columns));
  }
  lines.emplace_back();
  // Half of the screen is for the jobs, however many pools there are.
  if (size.rows > 0) {
    const auto most = static_cast<std::size_t>(std::max(3, size.rows / 2));
    if (lines.size() > most) lines.resize(most);
  }
  const std::size_t first = std::min(settings.first, jobs.empty() ? 0 : jobs.size() - 1);
  const std::size_t room =
      size.rows == 0 ? jobs.size()
                     : static_cast<std::size_t>(std::max(
                           0, size.rows - static_cast<int>(lines.size()) - (keys ? 2 : 1)));
  const auto shown = std::span<const Job>(jobs).subspan(first, std::min(room, jobs.size() - first));
  if (jobs.empty()) {
    lines.emplace_back("no jobs");
  } else {
    append_lines(lines, jobs_table(shown, data, size.columns, look.colors));
  }
  if (size.rows > 0 && keys) {
    lines.resize(static_cast<std::size_t>(std::max(1, size.rows - 1)));
    lines.emplace_back(
        "q quit  sort: s state i id p progress v value u user r reverse  a ended  ↑↓ scroll");
  }
  if (size.rows > 0 && lines.size() > static_cast<std::size_t>(size.rows)) {
    lines.erase(lines.begin(), lines.end() - size.rows);
  }
  for (std::string& line : lines) {
    if (size.columns > 0) line = clip(line, size.columns);
    if (!look.utf8) line = to_ascii(line);
  }
  return lines;
}

}  // namespace pipewright::cli
