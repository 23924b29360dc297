#include "daemon/jobs/ranks.hpp"

#include <algorithm>

#include "core/train/job.hpp"

namespace pipewright {

namespace {

int ranks_of(const Value& job, bool is_one_of_many) {
  const JobConfig config = JobConfig::from(job);
  if (config.ranks > 0) return config.ranks;
  if (is_one_of_many && job.at("clock").as_text() == "virtual") return 1;
  return std::max(1, config.schedule_header().rows());
}

bool may_change_ranks(const std::string& key) {
  return key == "ranks" || key == "clock" || key.starts_with("schedule");
}

}  // namespace

int ranks_wanted(const JobRuns& runs) {
  // Of very many, some: what is wanted is only where a run may be, not what comes of it.
  static constexpr std::uint32_t looked_at_max = 512;
  const auto& keys = runs.keys();
  const bool differ = std::any_of(keys.begin(), keys.end(), may_change_ranks);
  const std::uint32_t last = differ ? runs.size() - 1 : 0;
  int most = 1;
  for (std::uint32_t i = 0, steps = std::min(last, looked_at_max);; ++i) {
    const std::uint32_t number =
        steps == 0 ? 0 : static_cast<std::uint32_t>(static_cast<std::uint64_t>(last) * i / steps);
    most = std::max(most, ranks_of(runs.run(number).job, runs.many()));
    if (i >= steps) return most;
  }
}

}  // namespace pipewright
