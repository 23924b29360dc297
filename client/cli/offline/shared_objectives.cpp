#include "client/cli/offline/shared_objectives.hpp"

#include <algorithm>

namespace pipewright::cli {

namespace {

/// More data sets than this at a time are read again when they come back.
constexpr std::size_t entries_max = 8;

/// All that loading depends on.
std::string key_of(const JobConfig& job) {
  return job.objective_kind + " " + std::to_string(job.schedule_header().stages) + " " +
         to_json(job.objective, -1);
}

}  // namespace

std::shared_ptr<const LoadedObjective> SharedObjectives::get(const JobConfig& job) {
  const std::string key = key_of(job);
  const std::lock_guard lock(mutex_);
  const auto at = std::find_if(entries_.begin(), entries_.end(),
                               [&](const Entry& entry) { return entry.key == key; });
  if (at != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, at);
    return entries_.front().loaded;
  }
  DiskFiles disk;
  HashingFiles files(disk);
  auto loaded = std::make_shared<LoadedObjective>();
  loaded->objective = job.load_objective(files);
  loaded->files = files.files();
  if (entries_.size() == entries_max) entries_.pop_back();
  entries_.push_front({key, std::move(loaded)});
  return entries_.front().loaded;
}

}  // namespace pipewright::cli
