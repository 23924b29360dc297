#include "client/cli/view/pools_view.hpp"

#include <algorithm>
#include <vector>

#include "client/cli/view/table.hpp"
#include "client/cli/view/text.hpp"

namespace pipewright::cli {

namespace {

/// "n1 x4, n2 x4": in the order of their first ranks.
std::string hosts_text(const std::vector<std::string>& rank_hosts) {
  std::vector<std::pair<std::string, int>> hosts;
  for (const std::string& host : rank_hosts) {
    const auto at = std::find_if(hosts.begin(), hosts.end(),
                                 [&](const auto& known) { return known.first == host; });
    if (at == hosts.end()) {
      hosts.emplace_back(host, 1);
    } else {
      ++at->second;
    }
  }
  std::string text;
  for (const auto& [host, ranks] : hosts) {
    text += (text.empty() ? "" : ", ") + printable(host);
    if (hosts.size() > 1) text += " x" + std::to_string(ranks);
  }
  return text;
}

std::string jobs_text(std::vector<std::uint32_t> jobs) {
  std::sort(jobs.begin(), jobs.end());
  jobs.erase(std::unique(jobs.begin(), jobs.end()), jobs.end());
  std::string text;
  for (const std::uint32_t job : jobs) {
    if (job != 0) text += (text.empty() ? "" : " ") + std::to_string(job);
  }
  return text.empty() ? "-" : text;
}

std::string since(std::int64_t unix_ms, std::int64_t now_unix_ms) {
  if (unix_ms == 0) return "-";
  return format_seconds(static_cast<double>(std::max<std::int64_t>(0, now_unix_ms - unix_ms)) /
                        1000);
}

std::string state_text(const PoolInfo& pool, std::int64_t now_unix_ms) {
  if (pool.lease_ends_unix_ms == 0) return printable(pool.state);
  const auto left = std::max<std::int64_t>(0, pool.lease_ends_unix_ms - now_unix_ms);
  return printable(pool.state) + ", " + std::to_string((left + 999) / 1000) + " s left";
}

}  // namespace

std::string format_pools(const PoolList& list, std::int64_t now_unix_ms, int columns_max) {
  std::vector<std::vector<std::string>> rows;
  for (const PoolInfo& pool : list.pools) {
    const auto busy = std::count_if(pool.rank_jobs.begin(), pool.rank_jobs.end(),
                                    [](std::uint32_t job) { return job != 0; });
    const std::string heartbeat = since(pool.heartbeat_unix_ms, now_unix_ms);
    rows.push_back({printable(pool.name), state_text(pool, now_unix_ms),
                    std::to_string(pool.rank_hosts.size()), std::to_string(busy),
                    jobs_text(pool.rank_jobs), since(pool.attached_unix_ms, now_unix_ms),
                    heartbeat == "-" ? heartbeat : heartbeat + " ago",
                    pool.slurm_job.empty() ? "-" : printable(pool.slurm_job),
                    hosts_text(pool.rank_hosts)});
  }
  return format_table({{"NAME"},
                       {"STATE"},
                       {"RANKS", Align::right},
                       {"BUSY", Align::right},
                       {.title = "JOBS", .shrinks = true},
                       {"AGE", Align::right},
                       {"HEARD", Align::right},
                       {"SLURM JOB", Align::right},
                       {.title = "HOSTS", .shrinks = true}},
                      rows, columns_max);
}

}  // namespace pipewright::cli
