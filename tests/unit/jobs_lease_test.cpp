// The daemon's queue, and pools that lose the daemon and come back with their runs.
#include "tests/unit/jobs_queue.hpp"

namespace pipewright::jobs {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST_F(QueueTest, APoolWhoseConnectionIsCutComesBackWithItsRunsWithinTheLease) {
  put(PoolAttached{pool_a, 1, true, {}});
  put(JobAccepted{1, 1});
  run(1);
  EXPECT_THAT(put(PoolCut{pool_a, "cut"}), IsEmpty());
  EXPECT_EQ(queue.state_of(1), JobState::running);
  put(JobAccepted{2, 1});
  EXPECT_EQ(queue.state_of(2), JobState::queued) << "it gets nothing while it is away";
  EXPECT_THAT(put(PoolAttached{pool_a, 1, true, {{1, 0, 1}}}), IsEmpty());
  EXPECT_TRUE(queue.runs_on(pool_a, {1, 0, 1}));
  EXPECT_THAT(queue.rank_jobs(pool_a), ElementsAre(1u));
  EXPECT_THAT(end(1, RunOutcome::succeeded),
              testing::Contains(state(1, JobState::succeeded, 1, "")));
  EXPECT_EQ(queue.state_of(2), JobState::starting);
}

TEST_F(QueueTest, APoolThatIsAwayIsAwaitedUntilItsLeaseEndsAndShowsItsJobs) {
  put(PoolAttached{pool_a, 2, true, {}});
  put(JobAccepted{1, 1});
  EXPECT_FALSE(queue.awaits(pool_a));
  put(PoolCut{pool_a, "cut"});
  ASSERT_TRUE(queue.awaits(pool_a));
  EXPECT_EQ(queue.awaits_for(pool_a, now), milliseconds(60'000));
  EXPECT_EQ(queue.awaits_for(pool_a, now + milliseconds(45'000)), milliseconds(15'000));
  EXPECT_EQ(queue.awaits_for(pool_a, now + milliseconds(90'000)), milliseconds(0));
  EXPECT_THAT(queue.rank_jobs(pool_a), ElementsAre(1u, 0u));
}

TEST_F(QueueTest, APoolThatComesBackWithOtherRunsIsToldSo) {
  put(PoolAttached{pool_a, 1, true, {}});
  put(JobAccepted{1, 1});
  put(PoolCut{pool_a, "cut"});
  EXPECT_THAT(
      put(PoolAttached{pool_a, 1, true, {{7, 0, 1}}}),
      UnorderedElementsAre(state(1, JobState::queued, 1,
                                 "attempt 1 was given back: cut; its pool came back without it"),
                           text_of(CancelOnPool{pool_a, {7, 0, 1}}), start(1, pool_a, 2, {0}),
                           starting(1, 2)));
}

TEST_F(QueueTest, AfterTheLeaseTheRunsOfAPoolThatIsAwayStartAgainWhichIsNoLoss) {
  put(JobAccepted{1, 1});
  for (std::uint32_t attempt = 1; attempt <= 5; ++attempt) {
    put(PoolAttached{PoolId(attempt), 1, true, {}});
    put(PoolCut{PoolId(attempt), "cut"});
    EXPECT_EQ(queue.state_of(1), JobState::starting);
    for (int s = 0; s <= 61; ++s) {
      now += milliseconds(1000);
      put(TimePassed{});
    }
    EXPECT_EQ(queue.state_of(1), JobState::queued);
  }
}

TEST_F(QueueTest, ACancelledRunOfAPoolThatIsAwayEndsWhenItComesBack) {
  put(PoolAttached{pool_a, 1, true, {}});
  put(JobAccepted{1, 1});
  run(1);
  put(PoolCut{pool_a, "cut"});
  put(CancelAsked{1});
  EXPECT_EQ(queue.state_of(1), JobState::running);
  EXPECT_THAT(put(PoolAttached{pool_a, 1, true, {{1, 0, 1}}}),
              ElementsAre(text_of(CancelOnPool{pool_a, {1, 0, 1}})));
}

TEST_F(QueueTest, RunsThatWereUnderWayWhenTheDaemonWasKilledWaitForTheirPool) {
  JobRestored job = restored(1, JobState::running, 1, false);
  job.runs.front().pool = pool_a;
  job.runs.front().ranks = {1, 2};
  put(job);
  EXPECT_EQ(queue.state_of(1), JobState::running);
  EXPECT_THAT(put(PoolAttached{pool_b, 4}), IsEmpty());
  EXPECT_THAT(put(PoolAttached{pool_a, 4, true, {{1, 0, 1}}}), IsEmpty());
  EXPECT_THAT(queue.rank_jobs(pool_a), ElementsAre(0u, 1u, 1u, 0u));
  EXPECT_THAT(end(1, RunOutcome::succeeded),
              testing::Contains(state(1, JobState::succeeded, 1, "")));
}

TEST_F(QueueTest, ARunOfTwoPoolsIsThatOfTheOneThatItWasGivenTo) {
  put(PoolAttached{pool_a, 1, true, {}});
  put(JobAccepted{1, 1});
  run(1);
  EXPECT_THAT(put(PoolAttached{pool_b, 1, true, {{1, 0, 1}}}),
              ElementsAre(text_of(CancelOnPool{pool_b, {1, 0, 1}})));
  put(RunOver{pool_b, {1, 0, 1}, RunOutcome::cancelled, "", ""});
  EXPECT_EQ(queue.state_of(1), JobState::running);
}

TEST_F(QueueTest, APoolThatComesBackAfterItsLeaseHasNothingToSayOfItsRuns) {
  put(PoolAttached{pool_a, 1, true, {}});
  put(JobAccepted{1, 1});
  run(1);
  put(PoolCut{pool_a, "cut"});
  now += milliseconds(1000);
  put(TimePassed{});
  put(PoolLost{pool_a, "it is gone"});
  put(PoolAttached{pool_b, 1, true, {}});
  EXPECT_TRUE(queue.runs_on(pool_b, {1, 0, 2}));
  EXPECT_THAT(put(PoolAttached{pool_a, 1, true, {{1, 0, 1}}}),
              ElementsAre(text_of(CancelOnPool{pool_a, {1, 0, 1}})));
  EXPECT_THAT(put(RunOver{pool_a, {1, 0, 1}, RunOutcome::succeeded, "", "{}"}),
              ElementsAre(text_of(AcknowledgeEnd{pool_a, {1, 0, 1}})));
  EXPECT_EQ(queue.state_of(1), JobState::starting);
}

TEST_F(QueueTest, ARunThatHadNotBegunInAPoolThatIsAwayGetsANewAttempt) {
  JobRestored job = restored(1, JobState::running, 1, false);
  job.counts.total = 2;
  job.next_run = 2;
  job.runs.front().pool = pool_a;
  job.runs.front().ranks = {0};
  job.runs.push_back(job.runs.front());
  job.runs.back().number = 1;
  job.runs.back().state = JobState::starting;
  queue.handle(job, now);
  queue.handle(PoolLost{pool_a, "it is gone"}, now);
  queue.handle(PoolAttached{pool_b, 2}, now);
  EXPECT_TRUE(queue.runs_on(pool_b, {1, 0, 2}));
  EXPECT_TRUE(queue.runs_on(pool_b, {1, 1, 2})) << "the pool may still have attempt 1 of it";
}

}  // namespace
}  // namespace pipewright::jobs
