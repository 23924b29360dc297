#include "daemon/jobs/ranks.hpp"

#include <algorithm>

#include "core/train/job.hpp"

namespace pipewright {

int ranks_wanted(const Value& checked_job) {
  const JobConfig config = JobConfig::from(checked_job);
  return std::max(1, config.ranks > 0 ? config.ranks : config.schedule_header().rows());
}

}  // namespace pipewright
