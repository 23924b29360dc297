// The points of one run that the daemon has not said to have stored, so that they can be sent
// again. What all runs together have beyond a bound goes to files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace pipewright {

/// What the backlogs of all runs hold.
struct BacklogUse {
  std::size_t memory_bytes_max = 0;
  std::size_t bytes = 0;         // in memory and in files
  std::size_t memory_bytes = 0;  // beyond the bound only when a file cannot be written
};

class PointBacklog {
 public:
  /// `file` is made when it is needed and removed with this object.
  PointBacklog(std::string file, BacklogUse& use) : file_(std::move(file)), use_(use) {}
  ~PointBacklog();
  PointBacklog(const PointBacklog&) = delete;
  PointBacklog& operator=(const PointBacklog&) = delete;

  /// A frame with the points up to the index `end` (which follow those added before).
  void add(std::uint64_t end, std::string frame);
  /// All points below this index are stored.
  void acknowledge(std::uint64_t next_index);
  /// What is here is to be sent (again).
  void rewind() { next_ = 0; }
  /// The next frame that is to be sent, or nothing. Throws Error when the file cannot be read.
  std::optional<std::string> next();

 private:
  struct Chunk {
    std::uint64_t end = 0;
    std::string frame;  // empty when it is in the file
    std::uint64_t offset = 0;
    std::size_t size = 0;
  };

  bool write(const std::string& frame);
  void drop_first();
  void remove_file();

  std::string file_;
  BacklogUse& use_;
  std::deque<Chunk> chunks_;
  std::size_t next_ = 0;  // of the chunks, the first that has not been sent
  std::size_t chunks_in_file_ = 0;
  std::uint64_t file_bytes_ = 0;  // with those that are stored by now
};

}  // namespace pipewright
