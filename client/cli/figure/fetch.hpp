// What a figure needs of a job, brought from the daemon into a folder like that of a run.
#pragma once

#include <cstdint>
#include <filesystem>

#include "client/cli/net/api.hpp"

namespace pipewright::cli {

/// Of a job that has ended the files of numbers and the summary, as `export` writes them; of one
/// that waits or runs its points so far. `folder` is made.
void fetch_curves(const Api& api, std::uint32_t id, const std::filesystem::path& folder);

}  // namespace pipewright::cli
