// The machine's time as jobs, tokens and pools are stamped with it.
#pragma once

#include <chrono>
#include <cstdint>

namespace pipewright {

/// Milliseconds since 1970.
inline std::int64_t unix_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

/// Milliseconds since some start, that never go back.
inline std::chrono::milliseconds steady_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now);
}

}  // namespace pipewright
