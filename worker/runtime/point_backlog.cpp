#include "worker/runtime/point_backlog.hpp"

#include <filesystem>
#include <fstream>
#include <utility>

#include "core/base/error.hpp"

namespace pipewright {

PointBacklog::~PointBacklog() {
  while (!chunks_.empty()) drop_first();
}

void PointBacklog::add(std::uint64_t end, std::string frame) {
  Chunk chunk{end, {}, file_bytes_, frame.size()};
  use_.bytes += chunk.size;
  const bool fits = use_.memory_bytes + chunk.size <= use_.memory_bytes_max;
  if (fits || !write(frame)) {
    use_.memory_bytes += chunk.size;
    chunk.frame = std::move(frame);
  } else {
    file_bytes_ += chunk.size;
    ++chunks_in_file_;
  }
  chunks_.push_back(std::move(chunk));
}

/// Behind what the file has. False when the disk does not take it.
bool PointBacklog::write(const std::string& frame) {
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(file_).parent_path(), failed);
  {
    std::ofstream out(file_, std::ios::binary | std::ios::app);
    out.write(frame.data(), static_cast<std::streamsize>(frame.size()));
    out.close();
    if (out) return true;
  }
  std::filesystem::resize_file(file_, file_bytes_, failed);  // half of a frame may be there
  return false;
}

void PointBacklog::acknowledge(std::uint64_t next_index) {
  while (!chunks_.empty() && chunks_.front().end <= next_index) drop_first();
}

void PointBacklog::drop_first() {
  const Chunk& chunk = chunks_.front();
  use_.bytes -= chunk.size;
  use_.memory_bytes -= chunk.frame.size();
  if (chunk.frame.empty() && --chunks_in_file_ == 0) remove_file();
  chunks_.pop_front();
  if (next_ > 0) --next_;
}

void PointBacklog::remove_file() {
  std::error_code ignored;
  std::filesystem::remove(file_, ignored);
  file_bytes_ = 0;
}

std::optional<std::string> PointBacklog::next() {
  if (next_ == chunks_.size()) return std::nullopt;
  const Chunk& chunk = chunks_[next_++];
  if (!chunk.frame.empty()) return chunk.frame;
  std::string frame(chunk.size, '\0');
  std::ifstream in(file_, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(chunk.offset));
  in.read(frame.data(), static_cast<std::streamsize>(frame.size()));
  if (!in) throw Error(file_ + ": points that wait for the daemon cannot be read");
  return frame;
}

}  // namespace pipewright
