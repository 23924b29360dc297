#include "client/cli/figure/fetch.hpp"

#include <algorithm>
#include <array>
#include <fstream>

#include "client/cli/download.hpp"
#include "client/cli/offline/progress.hpp"
#include "core/base/text.hpp"

namespace pipewright::cli {

namespace {

namespace fs = std::filesystem;

/// Weights, schedules and timelines are large and not drawn.
bool is_drawn(const std::string& name) {
  static constexpr std::array<std::string_view, 5> names{
      "summary.json", "objective.csv", "validation.csv", "last_stage_loss.csv", "theory.csv"};
  return std::find(names.begin(), names.end(), name) != names.end();
}

void append_point(std::string& text, const Point& point, std::int64_t second) {
  append_number(text, point.tick);
  text += ',';
  append_number(text, second);
  text += ',';
  append_number(text, point.value);
  text += '\n';
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  if (!out.write(text.data(), static_cast<std::streamsize>(text.size())).flush()) {
    throw Error(path.string() + ": cannot be written");
  }
}

void write_points(const Api& api, const Job& job, const fs::path& folder) {
  std::string objective = "tick,updates,value\n", loss = "tick,microbatch,value\n";
  std::string validation = objective;
  ProgressLine line;
  for (std::uint64_t from = 1;;) {
    line.update(
        std::min(1.0, static_cast<double>(from) / static_cast<double>(job.last_sequence + 1)),
        [&] { return "fetching the points of job " + std::to_string(job.id); });
    const EventList page = api.events(job.id, from, "point");
    if (page.events.empty()) break;
    for (const Event& event : page.events) {
      const auto* point = std::get_if<Point>(&event.what);
      if (point == nullptr || event.run != 0) continue;  // of many runs the first stands for all
      if (point->series == Series::objective) append_point(objective, *point, point->updates);
      if (point->series == Series::validation) append_point(validation, *point, point->updates);
      if (point->series == Series::last_stage_loss) append_point(loss, *point, point->microbatch);
    }
    from = std::max(page.next_sequence, page.events.back().sequence + 1);
  }
  Value summary = Value::map();
  if (const Value* name = job.spec.find("name")) summary.set("name", *name);
  summary.set("job", job.spec);
  write(folder / "objective.csv", objective);
  write(folder / "validation.csv", validation);
  write(folder / "last_stage_loss.csv", loss);
  write(folder / "summary.json", to_json(summary));
}

}  // namespace

void fetch_curves(const Api& api, std::uint32_t id, const fs::path& folder) {
  const Job job = api.job(id);
  fs::create_directories(folder);
  DownloadHooks hooks;
  hooks.wants = is_drawn;
  ProgressLine line;
  hooks.progress = [&](double fraction, const std::string&) {
    line.update(fraction, [&] { return "fetching the curves of job " + std::to_string(id); });
  };
  const std::size_t files = is_final(job.state) ? download_job(api, job, folder, hooks) : 0;
  // A cancelled or failed job may have left points and no files.
  if (files == 0) write_points(api, job, folder);
}

}  // namespace pipewright::cli
