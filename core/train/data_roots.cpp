#include "core/train/data_roots.hpp"

#include <algorithm>
#include <filesystem>

#include "core/base/error.hpp"
#include "core/base/params.hpp"
#include "core/base/text.hpp"
#include "core/train/job.hpp"
#include "core/train/sweep.hpp"

namespace pipewright {

namespace fs = std::filesystem;

DataRoots::DataRoots(const std::vector<std::string>& folders) : bounded_(true) {
  for (const std::string& folder : folders) {
    std::error_code fault;
    const fs::path resolved = fs::weakly_canonical(folder, fault);
    if (!fault) folders_.push_back(resolved.string());
  }
}

bool DataRoots::contain(const std::string& path) const {
  return std::any_of(folders_.begin(), folders_.end(), [&](const std::string& folder) {
    return path.starts_with(folder) &&
           (folder == "/" || path.size() == folder.size() || path[folder.size()] == '/');
  });
}

void DataRoots::check_path(const std::string& path) const {
  if (!bounded_) return;
  if (folders_.empty()) {
    throw ConfigError(
        "'" + path +
        "': no files are read here, because no data root is configured (pipewrightd --data-root "
        "DIR); jobs with generated data need none");
  }
  const auto refuse = [&](const std::string& why) {
    throw ConfigError("'" + path + "' " + why + "; files are read from " + join(folders_, " and ") +
                      " alone");
  };
  const fs::path given(path);
  if (std::find(given.begin(), given.end(), fs::path("..")) != given.end()) refuse("has a '..'");
  std::error_code fault;
  const fs::path resolved = fs::weakly_canonical(given, fault);
  if (fault || !contain(resolved.string())) refuse("is not in a data root");
}

void DataRoots::check(const Value& job) const {
  if (!bounded_) return;
  Value checked = check_params(job_schema(), normal_sweep(job), "");
  const auto check_one = [this](const ParamSpec& spec, const Value& value) {
    if (!value.is_text()) return;
    try {
      check_path(value.as_text());
    } catch (const ConfigError& error) {
      throw ParamError("", spec.name + ": " + error.what());
    }
  };
  visit_params(job_schema(), checked, ParamType::path, check_one);
  visit_swept(checked, ParamType::path, check_one);
}

}  // namespace pipewright
