#include "worker/runtime/objective_cache.hpp"

#include <sys/stat.h>

#include <algorithm>

namespace pipewright {

namespace {

/// Rows keep their own copies of what they need, so a large problem is not kept twice.
constexpr std::int64_t kept_bytes_max = std::int64_t{256} << 20;

std::int64_t ns_of(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

Value key_of(const JobConfig& job) {
  Value key = Value::map();
  key.set("kind", job.objective_kind);
  key.set("parameters", job.objective);
  key.set("stages", job.schedule_header().stages);
  return key;
}

}  // namespace

/// Notes how a file was before it is read.
class ObjectiveCache::WatchedFiles : public FileSource {
 public:
  explicit WatchedFiles(std::vector<FileState>& states) : states_(states) {}
  std::unique_ptr<std::istream> open(const std::string& path) override {
    states_.push_back(state_of(path));
    return disk_.open(path);
  }

 private:
  std::vector<FileState>& states_;
  DiskFiles disk_;
};

ObjectiveCache::FileState ObjectiveCache::state_of(const std::string& path) {
  FileState state;
  state.path = path;
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return state;
  state.device = status.st_dev;
  state.inode = status.st_ino;
  state.bytes = static_cast<std::uint64_t>(status.st_size);
  state.modified_ns = ns_of(status.st_mtim);
  state.changed_ns = ns_of(status.st_ctim);
  return state;
}

bool ObjectiveCache::unchanged() const {
  return std::all_of(states_.begin(), states_.end(),
                     [](const FileState& state) { return state == state_of(state.path); });
}

const Objective& ObjectiveCache::get(const JobConfig& job) {
  Value key = key_of(job);
  if (objective_ && key == key_ && unchanged()) return *objective_;
  objective_.reset();
  states_.clear();
  WatchedFiles watched(states_);
  HashingFiles hashing(watched);
  objective_ = job.load_objective(hashing);
  hashed_ = hashing.files();
  key_ = std::move(key);
  return *objective_;
}

void ObjectiveCache::done() {
  if (objective_ && objective_->shape().data_bytes > kept_bytes_max) objective_.reset();
}

}  // namespace pipewright
