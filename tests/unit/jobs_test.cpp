// The daemon's queue with jobs of one run: every test states all effects of an input, "and nothing
// else".
#include "tests/unit/jobs_queue.hpp"

namespace pipewright::jobs {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST_F(QueueTest, AJobWithoutAPoolWaits) {
  EXPECT_THAT(put(JobAccepted{1, 2}), IsEmpty());
  EXPECT_EQ(queue.state_of(1), JobState::queued);
}

TEST_F(QueueTest, AWaitingJobStartsWhenAPoolAttaches) {
  put(JobAccepted{1, 2});
  EXPECT_THAT(put(PoolAttached{pool_a, 4}),
              UnorderedElementsAre(starting(1, 1), start(1, pool_a, 1, {0, 1})));
}

TEST_F(QueueTest, AJobThatWantsMoreRanksThanThePoolHasGetsAllOfThem) {
  put(PoolAttached{pool_a, 2});
  EXPECT_THAT(put(JobAccepted{1, 8}),
              UnorderedElementsAre(starting(1, 1), start(1, pool_a, 1, {0, 1})));
}

TEST_F(QueueTest, SmallJobsRunSideBySideOnDisjointRanks) {
  put(PoolAttached{pool_a, 4});
  put(JobAccepted{1, 1});
  EXPECT_THAT(put(JobAccepted{2, 2}),
              UnorderedElementsAre(starting(2, 1), start(2, pool_a, 1, {1, 2})));
  EXPECT_THAT(queue.rank_jobs(pool_a), ElementsAre(1, 2, 2, 0));
}

TEST_F(QueueTest, ASmallJobPassesALargeOneThatWaits) {
  put(PoolAttached{pool_a, 4});
  put(JobAccepted{1, 2});
  EXPECT_THAT(put(JobAccepted{2, 4}), IsEmpty());
  EXPECT_THAT(put(JobAccepted{3, 1}),
              UnorderedElementsAre(starting(3, 1), start(3, pool_a, 1, {2})));
}

TEST_F(QueueTest, RanksThatBecomeFreeServeTheQueueInOrder) {
  put(PoolAttached{pool_a, 2});
  put(JobAccepted{1, 2});
  put(JobAccepted{2, 1});
  put(JobAccepted{3, 1});
  put(JobAccepted{4, 1});
  run(1);
  EXPECT_THAT(end(1, RunOutcome::succeeded),
              UnorderedElementsAre(state(1, JobState::succeeded, 1), acknowledge(1, pool_a, 1),
                                   starting(2, 1), start(2, pool_a, 1, {0}), starting(3, 1),
                                   start(3, pool_a, 1, {1})));
}

TEST_F(QueueTest, ARunThatBeginsIsRunningOnce) {
  put(PoolAttached{pool_a, 1});
  put(JobAccepted{1, 1});
  EXPECT_THAT(put(RunBegan{pool_a, {1, 0, 1}}),
              UnorderedElementsAre(state(1, JobState::running, 1)));
  EXPECT_THAT(put(RunBegan{pool_a, {1, 0, 1}}), IsEmpty());
}

TEST_F(QueueTest, TheOutcomeCarriesMessageAndSummary) {
  put(PoolAttached{pool_a, 1});
  put(JobAccepted{1, 1});
  EXPECT_THAT(
      put(RunOver{pool_a, {1, 0, 1}, RunOutcome::succeeded, "diverged at tick 812", "{\"a\":1}"}),
      UnorderedElementsAre(state(1, JobState::succeeded, 1, "diverged at tick 812"),
                           acknowledge(1, pool_a, 1)));
  EXPECT_EQ(summary, "{\"a\":1}");
}

TEST_F(QueueTest, AFailedRunIsNotStartedAgain) {
  put(PoolAttached{pool_a, 1});
  put(JobAccepted{1, 1});
  EXPECT_THAT(end(1, RunOutcome::failed, "x.libsvm:3: NaN"),
              UnorderedElementsAre(state(1, JobState::failed, 1, "x.libsvm:3: NaN"),
                                   acknowledge(1, pool_a, 1)));
  EXPECT_EQ(queue.state_of(1), std::nullopt);
}

TEST_F(QueueTest, TheEndOfAnUnknownRunIsOnlyAcknowledged) {
  put(PoolAttached{pool_a, 1});
  put(JobAccepted{1, 1});
  EXPECT_THAT(end(1, RunOutcome::succeeded, {}, 7),
              UnorderedElementsAre(acknowledge(1, pool_a, 7)));
  EXPECT_THAT(end(9, RunOutcome::succeeded), UnorderedElementsAre(acknowledge(9, pool_a, 1)));
  EXPECT_EQ(queue.state_of(1), JobState::starting);
}

TEST_F(QueueTest, ARunBelongsToThePoolThatGotIt) {
  put(PoolAttached{pool_a, 1});
  put(JobAccepted{1, 1});
  put(PoolAttached{pool_b, 1});
  EXPECT_THAT(put(RunBegan{pool_b, {1, 0, 1}}), IsEmpty());
  EXPECT_THAT(end(1, RunOutcome::failed, {}, 1, pool_b),
              UnorderedElementsAre(acknowledge(1, pool_b, 1)));
  EXPECT_TRUE(queue.runs_on(pool_a, {1, 0, 1}));
}

TEST_F(QueueTest, ARunOfALostPoolIsQueuedAgainAtItsOldPlace) {
  put(PoolAttached{pool_a, 1});
  put(JobAccepted{1, 1});
  put(JobAccepted{2, 1});
  EXPECT_THAT(
      put(PoolLost{pool_a, "connection closed"}),
      UnorderedElementsAre(state(1, JobState::queued, 1, "attempt 1 was lost: connection closed")));
  EXPECT_THAT(put(PoolAttached{pool_b, 1}),
              UnorderedElementsAre(starting(1, 2), start(1, pool_b, 2, {0})));
}

TEST_F(QueueTest, APoolThatKeepsAliveAfterALostRunGetsItAgain) {
  put(PoolAttached{pool_a, 1});
  put(JobAccepted{1, 1});
  EXPECT_THAT(
      end(1, RunOutcome::lost, "rank 3 died"),
      UnorderedElementsAre(state(1, JobState::queued, 1, "attempt 1 was lost: rank 3 died"),
                           acknowledge(1, pool_a, 1), starting(1, 2), start(1, pool_a, 2, {0})));
}

TEST_F(QueueTest, TheThirdLostAttemptIsTheLast) {
  put(JobAccepted{1, 1});
  for (std::uint32_t attempt = 1; attempt <= 2; ++attempt) {
    put(PoolAttached{PoolId(attempt), 1});
    put(PoolLost{PoolId(attempt), "gone"});
  }
  put(PoolAttached{PoolId(3), 1});
  EXPECT_THAT(put(PoolLost{PoolId(3), "gone"}),
              UnorderedElementsAre(
                  state(1, JobState::failed, 3, "attempt 3, the last one, was lost: gone")));
  EXPECT_THAT(put(PoolAttached{PoolId(4), 1}), IsEmpty());
}

TEST_F(QueueTest, LossesCountFromTheLastCheckpointOn) {
  put(JobAccepted{1, 1});
  for (std::uint32_t attempt = 1; attempt <= 7; ++attempt) {
    put(PoolAttached{PoolId(attempt), 1});
    EXPECT_THAT(put(RunAdvanced{PoolId(attempt), {1, 0, attempt}}), IsEmpty());
    EXPECT_THAT(
        put(PoolLost{PoolId(attempt), "gone"}),
        UnorderedElementsAre(state(1, JobState::queued, attempt,
                                   "attempt " + std::to_string(attempt) + " was lost: gone")));
  }
  // Of another attempt, it is not this one's.
  put(PoolAttached{PoolId(8), 1});
  EXPECT_THAT(put(RunAdvanced{PoolId(8), {1, 0, 7}}), IsEmpty());
  put(PoolLost{PoolId(8), "gone"});
  put(PoolAttached{PoolId(9), 1});
  EXPECT_THAT(put(PoolLost{PoolId(9), "gone"}),
              UnorderedElementsAre(
                  state(1, JobState::failed, 9, "attempt 9, the last one, was lost: gone")));
}

TEST_F(QueueTest, ARunThatIsGivenBackStartsAgainElsewhereAtOnce) {
  put(PoolAttached{pool_a, 1});
  put(PoolAttached{pool_b, 1});
  put(JobAccepted{1, 1});
  run(1);
  EXPECT_THAT(put(PoolLeft{pool_a, "time limit"}),
              ElementsAre(state(1, JobState::queued, 1, "attempt 1 was given back: time limit"),
                          start(1, pool_b, 2, {0}), starting(1, 2)));
  EXPECT_THAT(end(1, RunOutcome::cancelled), IsEmpty()) << "what that pool says is no longer heard";
  EXPECT_THAT(put(PoolLost{pool_a, "closed"}), IsEmpty()) << "it has left already";
  EXPECT_TRUE(queue.runs_on(pool_b, {1, 0, 2}));
}

TEST_F(QueueTest, APoolThatHasLeftGetsNothingMore) {
  put(PoolAttached{pool_a, 4});
  EXPECT_THAT(put(PoolLeft{pool_a, "time limit"}), IsEmpty());
  EXPECT_THAT(put(JobAccepted{1, 1}), IsEmpty());
  EXPECT_THAT(queue.rank_jobs(pool_a), IsEmpty());
}

TEST_F(QueueTest, GivenBackIsNotLostHoweverOften) {
  put(JobAccepted{1, 1});
  std::uint32_t attempt = 0;
  const auto attach = [&] { put(PoolAttached{PoolId(++attempt), 1}); };
  for (int lost = 1; lost <= 2; ++lost) {
    for (int times = 0; times < 5; ++times) {
      attach();
      EXPECT_THAT(
          put(PoolLeft{PoolId(attempt), "requeued"}),
          ElementsAre(state(1, JobState::queued, attempt,
                            "attempt " + std::to_string(attempt) + " was given back: requeued")));
    }
    attach();
    put(PoolLost{PoolId(attempt), "gone"});
    EXPECT_EQ(queue.state_of(1), JobState::queued);
  }
  attach();
  EXPECT_THAT(
      put(PoolLost{PoolId(attempt), "gone"}),
      ElementsAre(state(1, JobState::failed, 13, "attempt 13, the last one, was lost: gone")));
}

TEST_F(QueueTest, APoolThatLeavesHasLostTheRunsThatItNamesAndNoOthers) {
  put(PoolAttached{pool_a, 2});
  put(JobAccepted{1, 1});
  put(JobAccepted{2, 1});
  EXPECT_THAT(
      put(PoolLeft{pool_a, "a rank has died", {{{1, 0, 1}, "rank 0 has died"}, {{2, 0, 7}, "x"}}}),
      UnorderedElementsAre(
          state(1, JobState::queued, 1, "attempt 1 was lost: rank 0 has died"),
          state(2, JobState::queued, 1, "attempt 1 was given back: a rank has died")))
      << "an attempt that is not this one is not meant";
  for (std::uint32_t attempt = 2; attempt <= 3; ++attempt) {
    put(PoolAttached{PoolId(attempt), 1});
    put(PoolLeft{PoolId(attempt), "a rank has died", {{{1, 0, attempt}, "rank 0 has died"}}});
  }
  EXPECT_FALSE(queue.state_of(1)) << "it has been lost three times";
  EXPECT_EQ(queue.state_of(2), JobState::queued);
}

TEST_F(QueueTest, ACancelledRunWhosePoolLeavesIsNotStartedAgain) {
  put(PoolAttached{pool_a, 1});
  put(PoolAttached{pool_b, 1});
  put(JobAccepted{1, 1});
  put(CancelAsked{1});
  EXPECT_THAT(put(PoolLeft{pool_a, "time limit"}),
              ElementsAre(state(1, JobState::cancelled, 1,
                                "cancelled; its run was given back: time limit")));
}

TEST_F(QueueTest, ALostPoolTakesAllOfItsRunsAndNoOthers) {
  put(PoolAttached{pool_a, 2});
  put(JobAccepted{1, 1});
  put(JobAccepted{2, 1});
  put(PoolAttached{pool_b, 1});
  put(JobAccepted{3, 1});
  EXPECT_THAT(put(PoolLost{pool_a, "gone"}),
              UnorderedElementsAre(state(1, JobState::queued, 1, "attempt 1 was lost: gone"),
                                   state(2, JobState::queued, 1, "attempt 1 was lost: gone")));
  EXPECT_TRUE(queue.runs_on(pool_b, {3, 0, 1}));
}

TEST_F(QueueTest, AQueuedJobIsCancelledAtOnce) {
  put(JobAccepted{1, 1});
  EXPECT_THAT(put(CancelAsked{1}),
              UnorderedElementsAre(state(1, JobState::cancelled, 0, "cancelled before it began")));
  EXPECT_THAT(put(PoolAttached{pool_a, 1}), IsEmpty());
}

TEST_F(QueueTest, CancellingTheHeadLetsTheNextStart) {
  put(PoolAttached{pool_a, 2});
  put(JobAccepted{1, 1});
  put(JobAccepted{2, 2});
  now += milliseconds(1);
  put(JobAccepted{3, 1});
  end(3, RunOutcome::succeeded);
  now += queue_limits.passing_max;
  EXPECT_THAT(put(JobAccepted{4, 1}), IsEmpty()) << "job 3 has passed the head: it was enough";
  EXPECT_THAT(put(CancelAsked{2}),
              UnorderedElementsAre(state(2, JobState::cancelled, 0, "cancelled before it began"),
                                   starting(4, 1), start(4, pool_a, 1, {1})));
}

TEST_F(QueueTest, ARunningJobIsCancelledWhenItsPoolAnswers) {
  put(PoolAttached{pool_a, 1});
  put(JobAccepted{1, 1});
  run(1);
  EXPECT_THAT(put(CancelAsked{1}), UnorderedElementsAre(text_of(StoreCancelAsked{1}),
                                                        text_of(CancelOnPool{pool_a, {1, 0, 1}})));
  EXPECT_THAT(put(CancelAsked{1}), IsEmpty()) << "asked once is enough";
  EXPECT_THAT(end(1, RunOutcome::cancelled, "cancelled"),
              UnorderedElementsAre(state(1, JobState::cancelled, 1, "cancelled"),
                                   acknowledge(1, pool_a, 1)));
}

TEST_F(QueueTest, ARunThatEndedBeforeItsCancelCameKeepsItsOutcome) {
  put(PoolAttached{pool_a, 1});
  put(JobAccepted{1, 1});
  put(CancelAsked{1});
  EXPECT_THAT(end(1, RunOutcome::succeeded),
              UnorderedElementsAre(state(1, JobState::succeeded, 1), acknowledge(1, pool_a, 1)));
}

TEST_F(QueueTest, ACancelledRunWhosePoolIsLostIsNotStartedAgain) {
  put(PoolAttached{pool_a, 1});
  put(JobAccepted{1, 1});
  put(CancelAsked{1});
  EXPECT_THAT(
      put(PoolLost{pool_a, "gone"}),
      UnorderedElementsAre(state(1, JobState::cancelled, 1, "cancelled; its run was lost: gone")));
}

TEST_F(QueueTest, CancellingWhatHasEndedOrNeverWasDoesNothing) {
  EXPECT_THAT(put(CancelAsked{5}), IsEmpty());
}

TEST_F(QueueTest, ASilentPoolIsDroppedAfterThreeIntervals) {
  put(PoolAttached{pool_a, 1});
  put(JobAccepted{1, 1});
  for (; now <= milliseconds(7000); now += milliseconds(1000)) {
    EXPECT_THAT(put(TimePassed{}), IsEmpty()) << now.count();
  }
  const std::string why = "the pool was silent for more than 6000 ms";
  EXPECT_THAT(put(TimePassed{}),
              UnorderedElementsAre(text_of(DropPool{pool_a, why}),
                                   state(1, JobState::queued, 1, "attempt 1 was lost: " + why)));
  EXPECT_THAT(put(PoolLost{pool_a, "closed"}), IsEmpty()) << "it was lost already";
}

TEST_F(QueueTest, APoolThatIsHeardIsKept) {
  put(PoolAttached{pool_a, 1});
  for (; now <= milliseconds(60000); now += milliseconds(2000)) {
    put(PoolHeard{pool_a});
    EXPECT_THAT(put(TimePassed{}), IsEmpty());
  }
}

TEST_F(QueueTest, TimeInWhichTheDaemonItselfStoodStillIsNotThePoolsFault) {
  put(PoolAttached{pool_a, 1});
  put(TimePassed{});
  now += milliseconds(60000);
  EXPECT_THAT(put(TimePassed{}), IsEmpty());
}

TEST_F(QueueTest, RestoredJobsGoOnInTheirOrder) {
  EXPECT_THAT(put(restored(1, JobState::running, 3, false)),
              UnorderedElementsAre(
                  state(1, JobState::queued, 3, "attempt 3 was lost: the daemon was restarted")));
  EXPECT_THAT(put(restored(2, JobState::queued, 0, false)), IsEmpty());
  EXPECT_THAT(put(PoolAttached{pool_a, 1}),
              UnorderedElementsAre(starting(1, 4), start(1, pool_a, 4, {0})));
}

TEST_F(QueueTest, ACancelIsRememberedOverARestart) {
  EXPECT_THAT(put(restored(1, JobState::running, 1, true)),
              UnorderedElementsAre(state(1, JobState::cancelled, 1, "cancelled while it ran")));
}

TEST_F(QueueTest, TheBoundCountsJobsThatHaveNotEnded) {
  Queue small({.jobs_max = 1});
  small.handle(JobAccepted{1, 1}, now);
  EXPECT_EQ(small.room(), 0u);
  small.handle(CancelAsked{1}, now);
  EXPECT_EQ(small.room(), 1u);
}

TEST_F(QueueTest, NothingStartsWhenTheDaemonIsAboutToEnd) {
  put(PoolAttached{pool_a, 1});
  queue.stop_starting();
  EXPECT_THAT(put(JobAccepted{1, 1}), IsEmpty());
}

TEST_F(QueueTest, ARunThatIsLostBecauseTheDaemonEndsNeverFails) {
  put(restored(1, JobState::running, 2, false));
  put(PoolAttached{pool_a, 1});
  queue.stop_starting();
  EXPECT_THAT(
      put(PoolLost{pool_a, "the daemon ends"}),
      UnorderedElementsAre(state(1, JobState::queued, 3, "attempt 3 was lost: the daemon ends")));
}

TEST_F(QueueTest, TheLargestShareOfRanksWins) {
  put(PoolAttached{pool_a, 2});
  put(PoolAttached{pool_b, 4});
  EXPECT_THAT(put(JobAccepted{1, 3}),
              UnorderedElementsAre(starting(1, 1), start(1, pool_b, 1, {0, 1, 2})));
}

}  // namespace
}  // namespace pipewright::jobs
