#include "daemon/jobs/waiting.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace pipewright::jobs {

void Waiting::add(const JobKind& kind, std::uint32_t job, Time now) {
  auto& ids = kinds_.try_emplace(kind, Jobs{{}, now}).first->second.ids;
  ids.insert(std::lower_bound(ids.begin(), ids.end(), job), job);
}

void Waiting::started(const JobKind& kind, Time now) {
  const auto at = kinds_.find(kind);
  if (at != kinds_.end()) at->second.since = now;
}

void Waiting::remove(const JobKind& kind, std::uint32_t job) {
  const auto at = kinds_.find(kind);
  PW_CHECK(at != kinds_.end(), "job " << job << " does not wait");
  auto& ids = at->second.ids;
  const auto place = std::lower_bound(ids.begin(), ids.end(), job);
  PW_CHECK(place != ids.end() && *place == job, "job " << job << " does not wait");
  ids.erase(place);
  if (ids.empty()) kinds_.erase(at);
}

}  // namespace pipewright::jobs
