// The files that runs leave: DATA_DIR/jobs/ID/NAME. A file is written under another name, synced,
// and renamed when its last part has come, so a file that is there is whole.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/store/sqlite.hpp"
#include "proto/codec/pool.hpp"

namespace pipewright {

class JobFiles {
 public:
  explicit JobFiles(std::filesystem::path root) : root_(std::move(root)) {}
  ~JobFiles();
  JobFiles(const JobFiles&) = delete;
  JobFiles& operator=(const JobFiles&) = delete;

  /// Throws ProtocolError for a bad name, size or offset, StoreError when the disk refuses.
  void put(const RunFileChunk& chunk);
  /// When this returns, the files of the job are on disk. Throws StoreError when the disk refuses.
  void sync(std::uint32_t job);
  /// Forgets a file of this job that has not come to its end, and what is not synced.
  void abandon(std::uint32_t job);

  /// By name; of a job without files an empty list.
  FileList list(std::uint32_t job) const;
  std::optional<std::filesystem::path> find(std::uint32_t job, const std::string& name) const;

 private:
  struct Part {
    std::uint32_t attempt = 0;
    std::string name;
    std::filesystem::path path;
    int descriptor = -1;
    std::uint64_t bytes = 0;
  };

  std::filesystem::path folder(std::uint32_t job) const;
  Part& begin(const RunFileChunk& chunk);
  void finish(std::uint32_t job);
  void drop_part(std::uint32_t job);

  std::filesystem::path root_;
  std::map<std::uint32_t, Part> parts_;  // at most one per job: files come one after the other
  std::map<std::uint32_t, std::vector<std::pair<std::filesystem::path, int>>> unsynced_;
};

/// Writes a whole small file through a temporary one, synced. `mode` as of chmod. Throws
/// StoreError.
void write_file_atomically(const std::filesystem::path& path, std::string_view text, unsigned mode);

}  // namespace pipewright
