// Where core gets files from. Core reads streams; whoever runs it decides which files may be
// opened, and may look at the bytes that pass (a run records a hash of its data).
#pragma once

#include <istream>
#include <memory>
#include <string>

namespace pipewright {

class FileSource {
 public:
  virtual ~FileSource() = default;
  /// Opens a file for reading bytes. Throws DataError ("PATH: cannot be opened: reason").
  virtual std::unique_ptr<std::istream> open(const std::string& path) = 0;
};

/// Files of this machine's file system.
class DiskFiles : public FileSource {
 public:
  std::unique_ptr<std::istream> open(const std::string& path) override;
};

}  // namespace pipewright
