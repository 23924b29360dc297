#include "client/cli/offline/run_folder.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "core/base/error.hpp"

namespace pipewright::cli {

namespace {

namespace fs = std::filesystem;

/// Seen by the threads of runs, set by a signal handler.
std::atomic<bool> is_interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

/// What a job of many runs leaves besides the folders of its runs and summary.json.
constexpr const char* table_files[] = {"runs.csv", "band.csv"};

bool has_results(const fs::path& folder) {
  const auto is_there = [&](const std::string& name) { return fs::exists(folder / name); };
  const auto& names = ResultFiles::names();
  return std::any_of(names.begin(), names.end(), is_there) ||
         std::any_of(std::begin(table_files), std::end(table_files), is_there);
}

bool is_run_folder(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with("run-") && name.size() >= 8 &&
         name.find_first_not_of("0123456789", 4) == std::string::npos;
}

}  // namespace

void check_folder(const std::string& out, bool force) {
  std::error_code fault;
  if (!fs::exists(out, fault)) return;
  if (!fs::is_directory(out, fault)) throw ConfigError("--out " + out + ": it is not a folder");
  if (force || fs::is_empty(out)) return;
  if (!has_results(out)) {
    throw ConfigError("--out " + out +
                      ": the folder holds other files and no earlier run; name another one, or "
                      "write into it anyway with --force");
  }
  std::cerr << "replacing the earlier run in " << out << '\n';
}

void begin_folder(const std::string& folder) {
  std::error_code fault;
  fs::create_directories(folder, fault);
  if (fault) throw ConfigError("--out " + folder + ": cannot be made: " + fault.message());
  for (const std::string& name : ResultFiles::names()) fs::remove(fs::path(folder) / name, fault);
  for (const char* name : table_files) fs::remove(fs::path(folder) / name, fault);
  std::vector<fs::path> runs;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && is_run_folder(entry.path())) runs.push_back(entry.path());
  }
  for (const fs::path& run : runs) {
    for (const std::string& name : ResultFiles::names()) fs::remove(run / name, fault);
    fs::remove(run, fault);  // stays where it holds anything else
  }
}

std::string folder_of_run(const std::string& out, std::uint32_t number) {
  char name[24];
  std::snprintf(name, sizeof name, "run-%04u", number);
  return (fs::path(out) / name).string();
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
