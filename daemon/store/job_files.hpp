// The files that runs leave: DATA_DIR/jobs/JOB/RUN/NAME. A file is written under another name and
// renamed when its last part has come, so a file that is there is whole.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "daemon/store/sqlite.hpp"
#include "proto/codec/pool.hpp"

namespace pipewright {

/// A job and the number of one of its runs.
using RunKey = std::pair<std::uint32_t, std::uint32_t>;

class JobFiles {
 public:
  explicit JobFiles(std::filesystem::path root) : root_(std::move(root)) {}
  ~JobFiles();
  JobFiles(const JobFiles&) = delete;
  JobFiles& operator=(const JobFiles&) = delete;

  /// Throws ProtocolError for a bad name, size or offset, StoreError when the disk refuses;
  /// after CannotWriteNow the same part may be put again.
  void put(const RunFileChunk& chunk);
  /// When this returns, the files of these runs are on disk, but for those runs that it gives, with
  /// what the disk said.
  std::map<RunKey, std::string> sync(std::span<const RunKey> runs);
  /// Forgets a file of this run that has not come to its end, and what is not synced.
  void abandon(RunKey run);

  /// Deletes all files of a job of which nothing is under way.
  void remove(std::uint32_t job);
  /// Deletes those of all other jobs than these (ascending): what a crash in remove() may have
  /// left.
  void remove_all_but(std::span<const std::uint32_t> jobs);
  /// Of all files of all jobs. Looks at them the first time only.
  std::int64_t bytes_used();

  /// Where the checkpoints of a run are until it has ended.
  std::filesystem::path checkpoints(RunKey run) const { return folder(run) / "checkpoint"; }
  /// By name; of a run without files an empty list.
  FileList list(RunKey run) const;
  std::optional<std::filesystem::path> find(RunKey run, const std::string& name) const;

 private:
  struct Part {
    std::uint32_t attempt = 0;
    std::string name;
    std::filesystem::path path;
    int descriptor = -1;
    std::uint64_t bytes = 0;
  };
  struct Written {
    std::filesystem::path path;
    int descriptor = -1;
  };

  std::filesystem::path folder(RunKey run) const;
  Part& begin(const RunFileChunk& chunk);
  void finish(RunKey run, std::uint64_t bytes);
  void drop_part(RunKey run);
  void close_written();
  std::string sync_all();
  std::string sync_run(RunKey run);

  static std::int64_t bytes_in(const std::filesystem::path& path);

  std::filesystem::path root_;
  std::optional<std::int64_t> bytes_;  // once they have been counted
  std::map<RunKey, Part> parts_;       // at most one per run: files come one after the other
  std::map<RunKey, std::vector<Written>> unsynced_;
  std::size_t descriptors_ = 0;  // in unsynced_
  bool some_closed_ = false;     // a file that is not synced has been closed: only sync_all() helps
  int root_descriptor_ = -1;     // open while files are unsynced, so that it hears of faults
};

/// Writes a whole small file through a temporary one, synced. `mode` as of chmod. Throws
/// StoreError.
void write_file_atomically(const std::filesystem::path& path, std::string_view text, unsigned mode);

}  // namespace pipewright
