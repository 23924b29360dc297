// What a daemon leaves in its data folder about the pool that it has started on its machine, for
// who comes after it: that pool outlives a daemon that is killed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace pipewright {

struct LocalPoolRecord {
  std::int64_t pid = 0;  // of its launcher
  std::string started;   // when, as the system counts: tells it from a later process of that number
  std::int64_t ranks = 0;
};

inline constexpr const char* local_pool_file = "pool-local.json";

/// When the process was started; empty when there is none, or it is a zombie.
std::string process_started(std::int64_t pid);

/// Nothing when there is no such file, or it holds something else.
std::optional<LocalPoolRecord> read_local_pool(const std::filesystem::path& data_dir);
std::string to_text(const LocalPoolRecord& record);

/// Its launcher is still there.
bool is_there(const LocalPoolRecord& record);

}  // namespace pipewright
