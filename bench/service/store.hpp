// A store as a group's daemon has it after a long time, written directly.
#pragma once

#include <cstdint>
#include <filesystem>

namespace pipewright::bench {

struct LargeStore {
  std::uint32_t long_run = 0;  // a job of one run with `long_points` losses and some objectives
  std::uint64_t long_points = 0;
  std::uint32_t many_runs = 0;  // a job of `runs` runs; as many jobs of one run came before it
  std::uint32_t runs = 0;
};

/// 100,000 runs and 10 million points; `smoke`: a hundredth of it.
LargeStore fill_store(const std::filesystem::path& database, bool smoke);

}  // namespace pipewright::bench
