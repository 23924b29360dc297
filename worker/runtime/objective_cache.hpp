// The data of the objective that a rank used last: the runs of a sweep mostly ask for the same, and
// reading it can cost more than a tiny run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/train/job.hpp"
#include "proto/codec/provenance.hpp"

namespace pipewright {

class ObjectiveCache {
 public:
  /// The objective of the job: the one kept, when its parameters and number of stages are the same
  /// and the files that it came from have not changed since; else it is loaded. Throws what
  /// JobConfig::load_objective throws.
  const Objective& get(const JobConfig& job);
  /// The files that the objective came from.
  const std::vector<HashedFile>& files() const { return hashed_; }
  /// To be called when the objective that get() gave is no longer used: forgets a large one.
  void done();

 private:
  /// What tells that a file is as it was.
  struct FileState {
    std::string path;
    std::uint64_t device = 0, inode = 0, bytes = 0;
    std::int64_t modified_ns = 0, changed_ns = 0;
    friend bool operator==(const FileState&, const FileState&) = default;
  };
  class WatchedFiles;

  static FileState state_of(const std::string& path);
  bool unchanged() const;

  Value key_;
  std::vector<FileState> states_;
  std::vector<HashedFile> hashed_;
  std::unique_ptr<Objective> objective_;
};

}  // namespace pipewright
