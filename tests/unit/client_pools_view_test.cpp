#include <gtest/gtest.h>

#include "client/cli/view/pools_view.hpp"

namespace pipewright::cli {
namespace {

TEST(PoolsView, ShowsRanksLoadHostsSlurmJobAgeAndHeartbeat) {
  PoolList list;
  list.pools.push_back({.name = "slurm-17",
                        .rank_hosts = {"n1", "n1", "n2"},
                        .rank_jobs = {7, 7, 0},
                        .attached_unix_ms = 1000,
                        .heartbeat_unix_ms = 3'600'000,
                        .program_version = "",
                        .local = false,
                        .state = "attached",
                        .slurm_job = "17"});
  list.pools.push_back({.name = "local",
                        .rank_hosts = {},
                        .rank_jobs = {},
                        .attached_unix_ms = 0,
                        .heartbeat_unix_ms = 0,
                        .program_version = "",
                        .local = true,
                        .state = "starting"});
  EXPECT_EQ(format_pools(list, 3'601'000, 0),
            "NAME      STATE     RANKS  BUSY  JOBS         AGE    HEARD  SLURM JOB  HOSTS\n"
            "slurm-17  attached      3     2  7     1 h 00 min  1 s ago         17  n1 x2, n2 x1\n"
            "local     starting      0     0  -              -        -          -\n");
}

TEST(PoolsView, APoolThatIsAwayIsWaitedForUntilItsLeaseEnds) {
  PoolList list;
  list.pools.push_back({.name = "p",
                        .rank_hosts = {"n1"},
                        .rank_jobs = {7},
                        .attached_unix_ms = 1000,
                        .heartbeat_unix_ms = 2000,
                        .program_version = "",
                        .local = false,
                        .state = "away",
                        .slurm_job = "",
                        .lease_ends_unix_ms = 60'000});
  EXPECT_EQ(format_pools(list, 7'500, 0),
            "NAME  STATE            RANKS  BUSY  JOBS    AGE      HEARD  SLURM JOB  HOSTS\n"
            "p     away, 53 s left      1     1  7     6.5 s  5.5 s ago          -  n1\n");
  EXPECT_EQ(format_pools(list, 61'000, 0),
            "NAME  STATE           RANKS  BUSY  JOBS         AGE     HEARD  SLURM JOB  HOSTS\n"
            "p     away, 0 s left      1     1  7     1 min 00 s  59 s ago          -  n1\n");
}

TEST(PoolsView, OneHostNeedsNoNumbers) {
  PoolList list;
  list.pools.push_back({.name = "local",
                        .rank_hosts = {"here", "here"},
                        .rank_jobs = {3, 2},
                        .attached_unix_ms = 5000,
                        .heartbeat_unix_ms = 6000,  // of a daemon whose clock is ahead of ours
                        .program_version = "",
                        .local = true,
                        .state = "attached"});
  EXPECT_EQ(format_pools(list, 5000, 0),
            "NAME   STATE     RANKS  BUSY  JOBS   AGE     HEARD  SLURM JOB  HOSTS\n"
            "local  attached      2     2  2 3   0 ms  0 ms ago          -  here\n");
}

}  // namespace
}  // namespace pipewright::cli
