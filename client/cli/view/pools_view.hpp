// The table of `pipewright pools`.
#pragma once

#include <cstdint>
#include <string>

#include "proto/codec/api.hpp"

namespace pipewright::cli {

/// A row per pool: ranks and how many of them are busy, hosts, Slurm job, age, last heartbeat.
/// `columns_max` 0: no limit.
std::string format_pools(const PoolList& list, std::int64_t now_unix_ms, int columns_max);

}  // namespace pipewright::cli
