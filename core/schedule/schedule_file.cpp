#include "core/schedule/schedule_file.hpp"

#include <filesystem>

#include "core/base/error.hpp"
#include "core/data/file_source.hpp"

namespace pipewright {

std::unique_ptr<std::istream> open_schedule_file(const std::string& path) {
  std::error_code fault;
  if (std::filesystem::is_other(path, fault)) {
    throw DataError(path + ": cannot be read: it is a pipe, a socket or a device, not a file");
  }
  return DiskFiles().open(path);
}

}  // namespace pipewright
