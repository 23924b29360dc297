#include "client/cli/offline/checkpoints.hpp"

#include "client/cli/offline/run_folder.hpp"

namespace pipewright::cli {

std::unique_ptr<StoredCheckpoints> checkpoints_for(const JobConfig& job, const std::string& folder,
                                                   const std::vector<HashedFile>& data, bool resume,
                                                   std::vector<std::string>& refused) {
  if (!job.checkpoint && !resume) return nullptr;
  auto checkpoints = std::make_unique<StoredCheckpoints>(checkpoint_folder(folder),
                                                         CheckpointOrigin::of(job.tree, data),
                                                         job.schedule_header().rows());
  if (resume) refused = checkpoints->find();
  return checkpoints;
}

void add_continued(Value& summary, const StoredCheckpoints* checkpoints) {
  if (checkpoints == nullptr || checkpoints->continued().empty()) return;
  Value::List ticks;
  for (const Tick tick : checkpoints->continued()) ticks.emplace_back(tick.value);
  summary.set("continued_from_ticks", std::move(ticks));
  add_earlier(summary, checkpoints->makers());
}

}  // namespace pipewright::cli
