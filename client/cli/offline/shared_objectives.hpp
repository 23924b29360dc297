// Objectives that runs share: their data is read once.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/train/job.hpp"
#include "proto/codec/provenance.hpp"

namespace pipewright::cli {

/// An objective and the files that it was made from.
struct LoadedObjective {
  std::unique_ptr<Objective> objective;
  std::vector<HashedFile> files;
};

/// For several threads. Loading is done by one at a time: the others most often want the same.
class SharedObjectives {
 public:
  /// Throws DataError, ParamError.
  std::shared_ptr<const LoadedObjective> get(const JobConfig& job);

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const LoadedObjective> loaded;
  };
  std::mutex mutex_;
  std::list<Entry> entries_;  // those used last come first
};

}  // namespace pipewright::cli
