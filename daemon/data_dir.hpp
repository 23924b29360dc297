// The daemon's folder, which belongs to one daemon at a time.
#pragma once

#include <filesystem>
#include <string>

namespace pipewright {

class DataDir {
 public:
  /// Makes the folder (mode 0700) if need be and locks it. Throws ConfigError when it cannot be
  /// written, or when another daemon has it (its pid is named).
  explicit DataDir(std::filesystem::path path);
  ~DataDir();
  DataDir(const DataDir&) = delete;
  DataDir& operator=(const DataDir&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path token_file() const { return path_ / "token"; }
  std::filesystem::path pool_log() const { return path_ / "pool-local.log"; }

  /// Writes daemon.json ({"url", "pid", "version"}, and "tls_ca" unless it is empty), by which
  /// clients find the daemon. It is removed with this object.
  void announce(const std::string& url, const std::string& tls_ca);

 private:
  std::filesystem::path path_;
  int lock_ = -1;
  bool announced_ = false;
};

}  // namespace pipewright
