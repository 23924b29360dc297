// Which job is next: priorities, shares, passing and its bound, as single steps and over thousands
// of simulated jobs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "tests/unit/jobs_text.hpp"

namespace pipewright::jobs {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::Ge;
using testing::IsEmpty;
using testing::Le;

/// A queue with pools whose runs take the time that they are given, on a clock of its own.
class Cluster {
 public:
  explicit Cluster(QueueLimits limits = {}) : queue(never_silent(limits)) {}

  void attach(std::uint32_t pool, std::uint32_t ranks) { put(PoolAttached{PoolId(pool), ranks}); }
  /// Every run of the job takes `took`.
  JobId submit(int ranks, milliseconds took, const std::string& user = "", int priority = 0,
               std::uint32_t runs = 1) {
    const JobId id = ++last_job_;
    took_[id] = took;
    user_[id] = user;
    put(JobAccepted{id, ranks, runs, user, priority});
    return id;
  }
  /// Lets runs end, and time pass in steps of a second, until then.
  void until(milliseconds end) {
    while (now < end) {
      const milliseconds step = std::min(end, (now / seconds(1) + 1) * milliseconds(1000));
      const milliseconds next = ends_.empty() ? step : std::min(step, ends_.begin()->first);
      now = std::max(now, next);
      if (ends_.empty() || ends_.begin()->first > now) {
        put(TimePassed{});
        continue;
      }
      const StartOnPool over = ends_.begin()->second;
      ends_.erase(ends_.begin());
      put(RunOver{over.pool, over.run, RunOutcome::succeeded, {}, {}});
    }
  }
  void put(const Input& input) {
    for (const Effect& effect : queue.handle(input, now)) {
      log.push_back(text_of(effect));
      const auto* start = std::get_if<StartOnPool>(&effect);
      if (start == nullptr) continue;
      // Ranks may have been given other runs before: it begins after those.
      milliseconds& free_at = free_at_[{start->pool, start->ranks.front()}];
      const milliseconds took = took_.at(start->run.job);
      free_at = std::max(free_at, now) + took;
      ends_.emplace(free_at, *start);
      started.emplace_back(start->run.job, now);
      rank_ms[user_.at(start->run.job)] += took.count() * static_cast<long>(start->ranks.size());
    }
  }
  bool idle() const { return ends_.empty(); }
  std::vector<JobId> jobs_started() const {
    std::vector<JobId> jobs;
    for (const auto& [job, when] : started) jobs.push_back(job);
    return jobs;
  }
  std::optional<milliseconds> when_started(JobId job) const {
    for (const auto& [one, when] : started) {
      if (one == job) return when;
    }
    return std::nullopt;
  }

  Queue queue;
  milliseconds now{0};
  std::vector<std::pair<JobId, milliseconds>> started;
  std::map<std::string, long> rank_ms;  // of started runs
  std::vector<std::string> log;

 private:
  static QueueLimits never_silent(QueueLimits limits) {
    limits.heartbeat_interval = std::chrono::hours(1'000'000);
    return limits;
  }

  JobId last_job_ = 0;
  std::map<JobId, milliseconds> took_;
  std::map<JobId, std::string> user_;
  std::map<std::pair<PoolId, std::uint32_t>, milliseconds> free_at_;
  std::multimap<milliseconds, StartOnPool> ends_;
};

TEST(Order, HigherPriorityGoesFirstAndEqualOnesInTheOrderOfTheirIds) {
  Cluster cluster;
  for (const int priority : {0, -5, 7, 0, 7}) cluster.submit(1, seconds(10), "", priority);
  cluster.attach(1, 1);
  cluster.until(seconds(60));
  EXPECT_THAT(cluster.jobs_started(), ElementsAre(3, 5, 1, 4, 2));
}

TEST(Order, TheUserWhoHasHadLessIsNext) {
  Cluster cluster;
  for (int i = 0; i < 4; ++i) cluster.submit(1, seconds(10), "anna");
  for (int i = 0; i < 2; ++i) cluster.submit(1, seconds(10), "bert");
  cluster.attach(1, 2);
  cluster.until(seconds(40));
  EXPECT_THAT(cluster.jobs_started(), ElementsAre(1, 5, 2, 6, 3, 4));
}

TEST(Order, SharesAreOfRankTimeAndNotOfRuns) {
  Cluster cluster;
  cluster.attach(1, 8);
  cluster.submit(1, seconds(2), "anna", 0, 100'000);
  cluster.submit(4, seconds(20), "bert", 0, 100'000);
  cluster.submit(1, seconds(30), "carl", 0, 100'000);
  cluster.until(seconds(40'000));
  const double total = 40'000'000.0 * 8;
  for (const std::string user : {"anna", "bert", "carl"}) {
    EXPECT_THAT(static_cast<double>(cluster.rank_ms[user]) / total, AllOf(Ge(0.30), Le(0.36)))
        << user;
  }
}

TEST(Order, WhoComesLaterCatchesUpWithRecentUseOnly) {
  Cluster cluster;
  cluster.attach(1, 4);
  cluster.submit(1, seconds(10), "anna", 0, 100'000);
  const seconds alone(100'000);
  cluster.until(alone);
  const long before = cluster.rank_ms["anna"];
  cluster.submit(1, seconds(10), "bert", 0, 100'000);
  cluster.until(alone + seconds(36'000));
  const double anna = static_cast<double>(cluster.rank_ms["anna"] - before);
  const double bert = static_cast<double>(cluster.rank_ms["bert"]);
  EXPECT_GT(bert, anna) << "anna has had all of it lately";
  EXPECT_LT(bert - anna, 1.02 * 4 * 3'600'000 / std::log(2.0))
      << "but of that only what is remembered";
}

TEST(Order, SmallJobsPassALargeOneForAMinuteThenRanksAreKeptForIt) {
  Cluster cluster;
  cluster.attach(1, 4);
  cluster.submit(1, seconds(20), "anna", 0, 1000);
  const JobId large = cluster.submit(4, seconds(5), "bert");
  cluster.until(seconds(19));
  EXPECT_FALSE(cluster.when_started(large));
  cluster.until(seconds(79));
  EXPECT_EQ(cluster.started.size(), 4u + 3 * 4) << "passed at 20, at 40 and at 60 s";
  cluster.until(seconds(200));
  EXPECT_EQ(cluster.when_started(large), std::optional<milliseconds>(seconds(80)))
      << "it was first passed at 20 s, so from 80 s on nothing else starts";
}

TEST(Order, WhatDoesNotFitHoldsUpNobodyOnPoolsThatItCannotUse) {
  Cluster cluster;
  cluster.attach(1, 4);
  cluster.attach(2, 1);
  cluster.submit(1, seconds(1000), "", 0, 2);
  const JobId large = cluster.submit(4, seconds(1));
  cluster.submit(1, seconds(5), "", 0, 1000);
  cluster.until(seconds(2000));
  EXPECT_EQ(cluster.when_started(large), std::optional<milliseconds>(seconds(1000)))
      << "kept from 60 s on, while one run lasts until 1000 s";
}

TEST(Order, AJobGoesToThePoolThatHasItsRanksAndWaitsForIt) {
  Cluster cluster;
  cluster.attach(1, 2);
  cluster.attach(2, 8);
  cluster.submit(8, seconds(10));
  const JobId second = cluster.submit(8, seconds(10));
  const JobId small = cluster.submit(2, seconds(10));
  EXPECT_EQ(cluster.log.back(), "job 3 STARTING attempt 1");
  EXPECT_EQ(cluster.queue.rank_jobs(PoolId(1)), (std::vector<JobId>{small, small}));
  cluster.until(seconds(30));
  EXPECT_EQ(cluster.when_started(second), std::optional<milliseconds>(seconds(10)));
}

TEST(Order, SmallJobsTakeThePoolThatTheyFillBest) {
  Cluster cluster;
  cluster.attach(1, 8);
  cluster.attach(2, 2);
  cluster.submit(2, seconds(10));
  EXPECT_THAT(cluster.queue.rank_jobs(PoolId(2)), ElementsAre(1, 1));
}

TEST(Order, AJobLargerThanAnyPoolGetsAllOfTheLargest) {
  Cluster cluster;
  cluster.attach(1, 2);
  cluster.attach(2, 4);
  cluster.submit(16, seconds(10));
  EXPECT_THAT(cluster.queue.rank_jobs(PoolId(2)), ElementsAre(1, 1, 1, 1));
}

TEST(Order, AJobWaitsALittleForALostPoolOfItsSizeToComeBack) {
  Cluster cluster;
  cluster.attach(1, 2);
  cluster.attach(2, 8);
  cluster.put(PoolLost{PoolId(2), "gone"});
  const JobId large = cluster.submit(8, seconds(10));
  cluster.until(seconds(5));
  EXPECT_FALSE(cluster.when_started(large));
  cluster.until(seconds(14));
  EXPECT_FALSE(cluster.when_started(large));
  cluster.until(seconds(16));
  EXPECT_EQ(cluster.when_started(large), std::optional<milliseconds>(seconds(15)));
}

TEST(Order, AStreamOfHigherPrioritiesDoesNotStarveALowOneForEver) {
  Cluster cluster;
  cluster.attach(1, 2);
  cluster.submit(1, seconds(30), "anna", 100, 100'000);
  const JobId low = cluster.submit(2, seconds(30), "bert", -100);
  cluster.until(seconds(3600 - 31));
  EXPECT_FALSE(cluster.when_started(low));
  cluster.until(seconds(3600 + 60 + 60));
  EXPECT_TRUE(cluster.when_started(low)) << "an hour, then a minute of being passed, then a drain";
}

TEST(Order, AJobSaysWhyItWaits) {
  Cluster cluster;
  EXPECT_EQ(cluster.queue.why_waits(1), "");
  cluster.submit(1, seconds(10), "", 0, 7);
  EXPECT_EQ(cluster.queue.why_waits(1), "waits for a pool; none is attached");
  cluster.attach(1, 4);
  cluster.submit(1, seconds(10));
  const JobId large = cluster.submit(8, seconds(10));
  const JobId other = cluster.submit(2, seconds(10), "bert");
  EXPECT_EQ(cluster.queue.why_waits(other), "waits for 2 ranks; 0 free");
  EXPECT_EQ(cluster.queue.why_waits(1), "waits for 1 rank; 0 free; 1 job before it");
  EXPECT_EQ(cluster.queue.why_waits(large), "waits for 4 ranks; 0 free; 3 jobs before it");
  cluster.until(seconds(90));
  EXPECT_EQ(cluster.queue.why_waits(other), "") << "it has run";
}

struct Stream {
  int kinds = 0;
  milliseconds took_max{0};
  std::map<JobId, std::pair<milliseconds, std::uint32_t>>
      accepted;  // when, runs of its kind before it
};

/// Random jobs of random users for so long.
Stream submit_at_random(Cluster& cluster, unsigned seed, seconds length) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t bound) { return random() % bound; };
  Stream stream;
  std::map<std::tuple<std::string, int, int>, std::vector<std::pair<JobId, std::uint32_t>>> kinds;
  const std::vector<int> sizes{1, 1, 1, 2, 3, 8, 20};
  while (cluster.now < length) {
    const std::string user(1, static_cast<char>('a' + below(3)));
    const int priority = below(4) == 0 ? 50 : 0;
    const int ranks = sizes[below(sizes.size())];
    const milliseconds took(1 + below(40'000));
    const auto runs = static_cast<std::uint32_t>(1 + (below(10) == 0 ? below(20) : 0));
    auto& before = kinds[{user, priority, ranks}];
    std::uint32_t runs_before = 0;
    for (const auto& [job, count] : before) runs_before += count;
    const JobId job = cluster.submit(ranks, took, user, priority, runs);
    before.emplace_back(job, runs);
    stream.accepted[job] = {cluster.now, runs_before};
    stream.took_max = std::max(stream.took_max, took);
    cluster.until(cluster.now + milliseconds(below(9'000)));
  }
  stream.kinds = static_cast<int>(kinds.size());
  return stream;
}

// Whatever comes, the next run of a kind starts before it has starved (S), then the other kinds
// that starve have each had one start, and each of these after being passed (P) and a drain (D).
TEST(Order, EveryJobOfARandomStreamStartsWithinItsBound) {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    QueueLimits limits;
    limits.starving_after = seconds(300);
    limits.passing_max = seconds(20);
    Cluster cluster(limits);
    cluster.attach(1, 8);
    cluster.attach(2, 2);
    cluster.attach(3, 3);
    const Stream stream = submit_at_random(cluster, seed, seconds(4'000));
    cluster.until(cluster.now + seconds(400'000));
    const milliseconds drain = stream.took_max + seconds(2) + limits.ahead_time;
    const milliseconds bound = limits.starving_after + stream.kinds * (limits.passing_max + drain);
    for (const auto& [job, accepted] : stream.accepted) {
      const auto start = cluster.when_started(job);
      ASSERT_TRUE(start) << "seed " << seed << ", job " << job;
      EXPECT_LE(*start - accepted.first, (accepted.second + 1) * bound)
          << "seed " << seed << ", job " << job;
    }
  }
}

TEST(Order, RanksAreNeverUsedTwiceAndNoneThatFitsStaysIdle) {
  Cluster cluster;
  cluster.attach(1, 8);
  cluster.attach(2, 4);
  submit_at_random(cluster, 5, seconds(3'000));
  cluster.until(cluster.now + seconds(100'000));
  EXPECT_THAT(cluster.queue.rank_jobs(PoolId(1)), testing::Each(0u));
  EXPECT_THAT(cluster.queue.rank_jobs(PoolId(2)), testing::Each(0u));
  EXPECT_TRUE(cluster.idle());
}

TEST(Order, TheSameEventsHaveTheSameEffects) {
  const auto log_of = [] {
    Cluster cluster;
    cluster.attach(1, 8);
    cluster.attach(2, 2);
    submit_at_random(cluster, 3, seconds(500));
    return cluster.log;
  };
  EXPECT_EQ(log_of(), log_of());
}

TEST(Shares, UseDecaysByHalfInItsHalfLife) {
  Shares shares(seconds(100));
  shares.take("anna", 3, seconds(0));
  EXPECT_NEAR(shares.load("anna", seconds(0)), 3 * 60, 1e-9) << "a minute in advance";
  shares.give_back("anna", 3, seconds(100));
  const double ever = 3 * 100 / std::log(2.0);
  EXPECT_NEAR(shares.load("anna", seconds(100)), ever / 2, 1e-9);
  EXPECT_NEAR(shares.load("anna", seconds(300)), ever / 8, 1e-9);
  EXPECT_EQ(shares.load("bert", seconds(300)), 0);
}

TEST(Shares, ManyShortUsesWeighAsMuchAsALongOne) {
  Shares one(seconds(1000)), many(seconds(1000));
  one.take("anna", 2, seconds(0));
  for (int i = 0; i < 50; ++i) {
    many.take("anna", 2, seconds(i));
    many.give_back("anna", 2, seconds(i + 1));
  }
  one.give_back("anna", 2, seconds(50));
  EXPECT_NEAR(one.load("anna", seconds(60)), many.load("anna", seconds(60)), 1e-9);
}

}  // namespace
}  // namespace pipewright::jobs
