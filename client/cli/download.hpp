// The files of a job, brought from the daemon into a folder as `run` lays them out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "client/cli/net/api.hpp"

namespace pipewright::cli {

struct DownloadHooks {
  /// Which files of a run are wanted, by name.
  std::function<bool(const std::string& name)> wants = [](const std::string&) { return true; };
  /// Called for every file that has been written.
  std::function<void(const std::filesystem::path& path, std::uint64_t bytes)> written =
      [](const std::filesystem::path&, std::uint64_t) {};
  /// Called before every file, with the part of the job's runs (of one run: of its bytes) that are
  /// here.
  std::function<void(double fraction, const std::string& file)> progress =
      [](double, const std::string&) {};
};

/// The files of a job that has ended; `folder` is made. Of a job of many runs those of the runs
/// that succeeded, each in its own folder, and beside them the tables. Gives how many files there
/// are.
std::size_t download_job(const Api& api, const Job& job, const std::filesystem::path& folder,
                         const DownloadHooks& hooks);

}  // namespace pipewright::cli
