// Files that a test makes up.
#pragma once

#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/data/file_source.hpp"

namespace pipewright {

class MemoryFiles : public FileSource {
 public:
  void put(const std::string& path, std::string bytes) { files_[path] = std::move(bytes); }

  std::unique_ptr<std::istream> open(const std::string& path) override {
    const auto file = files_.find(path);
    if (file == files_.end()) throw DataError(path + ": cannot be opened: not there");
    return std::make_unique<std::istringstream>(file->second);
  }

 private:
  std::map<std::string, std::string> files_;
};

/// The bytes of an NPY file of float64 with the given shape, "(5, 3)".
inline std::string npy_bytes(const std::string& shape, const std::vector<double>& values) {
  std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + ", }";
  header.append(117 - header.size(), ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\0\x76\0", 10);
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
  return bytes;
}

}  // namespace pipewright
