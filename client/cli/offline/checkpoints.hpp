// The checkpoints of a run in this process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/train/job.hpp"
#include "proto/codec/checkpoint_folder.hpp"

namespace pipewright::cli {

/// Of a run in `folder`; null for one that neither stores any nor is to go on from one. `refused`
/// is given why checkpoints there cannot be used.
std::unique_ptr<StoredCheckpoints> checkpoints_for(const JobConfig& job, const std::string& folder,
                                                   const std::vector<HashedFile>& data, bool resume,
                                                   std::vector<std::string>& refused);

/// `continued_from_ticks`, of a run that has gone on from checkpoints, and who else made these.
void add_continued(Value& summary, const StoredCheckpoints* checkpoints);

}  // namespace pipewright::cli
