// Consecutive points of a job as one compact blob (about 14 bytes a point): per point its series,
// the differences of time, tick, updates and microbatch to the point of the same series before it
// as zigzag varints, and the value's 8 bytes, little-endian.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proto/codec/api.hpp"

namespace pipewright {

/// All of `events` must hold points.
std::string encode_points(std::span<const Event> events);

/// Events with the numbers first_sequence, first_sequence + 1, ... Throws DataError for bytes that
/// are not such a blob.
std::vector<Event> decode_points(std::string_view blob, std::uint64_t first_sequence);

}  // namespace pipewright
