#include "client/cli/offline/run_folder.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "core/base/error.hpp"
#include "proto/codec/checkpoint_folder.hpp"
#include "proto/codec/json.hpp"
#include "proto/codec/provenance.hpp"

namespace pipewright::cli {

namespace {

namespace fs = std::filesystem;

/// Seen by the threads of runs, set by a signal handler.
std::atomic<bool> is_interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

/// What a job of many runs leaves besides the folders of its runs and summary.json.
constexpr const char* table_files[] = {"runs.csv", "band.csv"};

bool is_run_folder(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with("run-") && name.size() >= 8 &&
         name.find_first_not_of("0123456789", 4) == std::string::npos;
}

/// Of a job of many that was killed there are only the folders of its runs.
bool has_results(const fs::path& folder) {
  const auto is_there = [&](const std::string& name) { return fs::exists(folder / name); };
  const auto& names = ResultFiles::names();
  return std::any_of(names.begin(), names.end(), is_there) ||
         std::any_of(std::begin(table_files), std::end(table_files), is_there) ||
         std::any_of(fs::directory_iterator(folder), fs::directory_iterator(),
                     [](const auto& entry) { return is_run_folder(entry.path()); });
}

}  // namespace

void check_folder(const std::string& out, bool force, bool resume) {
  std::error_code fault;
  if (!fs::exists(out, fault)) return;
  if (!fs::is_directory(out, fault)) throw ConfigError("--out " + out + ": it is not a folder");
  if (force || fs::is_empty(out)) return;
  if (!has_results(out)) {
    throw ConfigError("--out " + out +
                      ": the folder holds other files and no earlier run; name another one, or "
                      "write into it anyway with --force");
  }
  if (!resume) std::cerr << "replacing the earlier run in " << out << '\n';
}

void begin_folder(const std::string& folder, bool keep_runs) {
  std::error_code fault;
  fs::create_directories(folder, fault);
  if (fault) throw ConfigError("--out " + folder + ": cannot be made: " + fault.message());
  for (const std::string& name : ResultFiles::names()) fs::remove(fs::path(folder) / name, fault);
  for (const char* name : table_files) fs::remove(fs::path(folder) / name, fault);
  if (keep_runs) return;
  CheckpointFolder(checkpoint_folder(folder)).clear();
  std::vector<fs::path> runs;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && is_run_folder(entry.path())) runs.push_back(entry.path());
  }
  for (const fs::path& run : runs) {
    for (const std::string& name : ResultFiles::names()) fs::remove(run / name, fault);
    CheckpointFolder(checkpoint_folder(run.string())).clear();
    fs::remove(run, fault);  // stays where it holds anything else
  }
}

std::string folder_of_run(const std::string& out, std::uint32_t number) {
  char name[24];
  std::snprintf(name, sizeof name, "run-%04u", number);
  return (fs::path(out) / name).string();
}

std::string checkpoint_folder(const std::string& folder) {
  return (fs::path(folder) / "checkpoint").string();
}

/// It is written last, and taken away before anything else when a run begins.
std::optional<Value> ended_run(const std::string& folder, const Value& checked_job) {
  std::ifstream in(fs::path(folder) / "summary.json", std::ios::binary);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  try {
    Value summary = value_from_json(text.str());
    const Value* job = summary.find("job_sha256");
    if (job != nullptr && *job == Value(job_sha256(checked_job))) return summary;
  } catch (const Error&) {
    // Cut short: it has not ended.
  }
  return std::nullopt;
}

InterruptGuard::InterruptGuard() {
  is_interrupted = false;
  before_ = std::signal(SIGINT, [](int) { is_interrupted = true; });
}

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, before_);
}

bool InterruptGuard::interrupted() {
  return is_interrupted;
}

}  // namespace pipewright::cli
