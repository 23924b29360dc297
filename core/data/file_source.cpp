#include "core/data/file_source.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/base/error.hpp"

namespace pipewright {

std::unique_ptr<std::istream> DiskFiles::open(const std::string& path) {
  std::error_code fault;
  if (std::filesystem::is_directory(path, fault)) {
    throw DataError(path + ": cannot be opened: it is a folder, not a file");
  }
  auto stream = std::make_unique<std::ifstream>(path, std::ios::binary);
  if (!stream->is_open()) {
    throw DataError(path + ": cannot be opened: " + std::strerror(errno));
  }
  return stream;
}

}  // namespace pipewright
