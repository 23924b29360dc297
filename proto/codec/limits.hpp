// Bounds on what jobs may hold, whoever wrote them.
#pragma once

#include <cstddef>

namespace pipewright {

/// Of maps and lists inside each other. A level takes three of the 100 that protobuf allows.
inline constexpr int value_depth_max = 24;
inline constexpr std::size_t job_file_bytes_max = std::size_t{8} << 20;
/// Of a job file with its aliases expanded: values, and bytes of text.
inline constexpr std::size_t job_values_max = 200'000;
inline constexpr std::size_t job_text_bytes_max = std::size_t{16} << 20;
inline constexpr std::size_t job_key_bytes_max = 200;

}  // namespace pipewright
