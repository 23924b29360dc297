// One job on all ranks of the test's world, and the same in one process.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "core/train/result_files.hpp"
#include "tests/mpi/mpi_main.hpp"
#include "tests/support/runs.hpp"
#include "worker/runtime/pool.hpp"

namespace pipewright {

inline std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// A folder that goes away with the test.
class TemporaryFolder {
 public:
  TemporaryFolder()
      : path_(std::filesystem::temp_directory_path() /
              ("pipewright-mpi-test-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline void run_here(const Value& job, const std::string& folder) {
  std::filesystem::create_directories(folder);
  ResultFiles files(folder);
  const RunResult result = run_job(job, files);
  files.finish(result.summary, result.weights);
}

/// Every rank calls this; rank 0 gets the result, the others nothing.
inline std::optional<StandaloneResult> run_on_ranks(const Value& job, const std::string& folder) {
  std::atomic<bool> stop{false};
  if (world()->rank() != 0) {
    serve_rank(*world(), {static_cast<std::uint32_t>(world()->rank()), "here", getpid()}, stop);
    return std::nullopt;
  }
  gather_ranks(*world(), {0, "here", getpid()}, stop);
  StandaloneResult result = run_standalone(*world(), job, folder, {});
  shut_down_ranks(*world());
  return result;
}

}  // namespace pipewright
