#include "core/data/file_source.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/base/error.hpp"

namespace pipewright {

std::unique_ptr<std::istream> DiskFiles::open(const std::string& path) {
  std::error_code fault;
  const std::filesystem::file_status status = std::filesystem::status(path, fault);
  if (std::filesystem::is_directory(status)) {
    throw DataError(path + ": cannot be opened: it is a folder, not a file");
  }
  // Files are read by several ranks, and more than once; opening a pipe waits for its writer.
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw DataError(path + ": cannot be read: it is a pipe, a socket or a device, not a file");
  }
  auto stream = std::make_unique<std::ifstream>(path, std::ios::binary);
  if (!stream->is_open()) {
    throw DataError(path + ": cannot be opened: " + std::strerror(errno));
  }
  return stream;
}

}  // namespace pipewright
