#include "core/schedule/schedule_file.hpp"

#include <filesystem>

#include "core/base/error.hpp"
#include "core/data/file_source.hpp"

namespace pipewright {

std::unique_ptr<std::istream> open_schedule_file(const std::string& path) {
  std::error_code fault;
  const std::filesystem::file_status status = std::filesystem::status(path, fault);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
      !std::filesystem::is_directory(status)) {
    throw DataError(path + ": cannot be read: it is a pipe, a socket or a device, not a file");
  }
  return DiskFiles().open(path);
}

}  // namespace pipewright
