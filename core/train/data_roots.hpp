// The folders that jobs may read from, where not everything that the program could open is meant
// for whoever wrote the job.
#pragma once

#include <string>
#include <vector>

#include "core/base/value.hpp"

namespace pipewright {

class DataRoots {
 public:
  /// No bounds: whatever can be opened may be read.
  DataRoots() = default;
  /// Nothing outside of these folders; with none of them, nothing at all.
  explicit DataRoots(const std::vector<std::string>& folders);

  bool bounded() const { return bounded_; }
  /// The folders with their links followed.
  const std::vector<std::string>& folders() const { return folders_; }

  /// Of a message: without folders no bounds.
  static DataRoots unless_empty(const std::vector<std::string>& folders) {
    return folders.empty() ? DataRoots() : DataRoots(folders);
  }

  /// Every file that a job names lies in a root, as it is now: links are followed as far as they
  /// are there. To be called before check_job, which reads a schedule's file. Throws ParamError
  /// with the key, the path and the roots (or what else does not fit the schema); what is outside
  /// is not looked at further, so nobody learns what is there.
  void check(const Value& job) const;
  /// The same of one path. Throws ConfigError.
  void check_path(const std::string& path) const;

 private:
  bool contain(const std::string& path) const;

  bool bounded_ = false;
  std::vector<std::string> folders_;
};

}  // namespace pipewright
