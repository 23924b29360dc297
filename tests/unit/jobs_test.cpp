// The daemon's queue: every test states all effects of an input, "and nothing else".
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/jobs/queue.hpp"

namespace pipewright::jobs {

void PrintTo(const Effect& effect, std::ostream* out) {
  if (const auto* s = std::get_if<StoreState>(&effect)) {
    *out << "StoreState{job " << s->job << ", state " << static_cast<int>(s->state) << ", '"
         << s->message << "', attempt " << s->attempt << ", ranks "
         << testing::PrintToString(s->ranks) << ", '" << s->summary_json << "'}";
  } else if (const auto* c = std::get_if<StoreCancelAsked>(&effect)) {
    *out << "StoreCancelAsked{" << c->job << "}";
  } else if (const auto* b = std::get_if<StartOnPool>(&effect)) {
    *out << "StartOnPool{pool " << b->pool << ", " << b->run.job << "/" << b->run.attempt << " on "
         << testing::PrintToString(b->ranks) << "}";
  } else if (const auto* x = std::get_if<CancelOnPool>(&effect)) {
    *out << "CancelOnPool{pool " << x->pool << ", " << x->run.job << "/" << x->run.attempt << "}";
  } else if (const auto* a = std::get_if<AcknowledgeEnd>(&effect)) {
    *out << "AcknowledgeEnd{pool " << a->pool << ", " << a->run.job << "/" << a->run.attempt << "}";
  } else if (const auto* d = std::get_if<DropPool>(&effect)) {
    *out << "DropPool{pool " << d->pool << ", '" << d->reason << "'}";
  }
}

namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;
using Ranks = std::vector<std::uint32_t>;

constexpr PoolId pool_a{1};
constexpr PoolId pool_b{2};

Effect state(JobId job, JobState state, std::uint32_t attempt, std::string message = {},
             std::string summary = {}) {
  return StoreState{job, state, std::move(message), attempt, {}, {}, std::move(summary)};
}
Effect starting(JobId job, PoolId pool, std::uint32_t attempt, Ranks ranks) {
  return StoreState{job, JobState::starting, {}, attempt, pool, std::move(ranks), {}};
}
Effect start(JobId job, PoolId pool, std::uint32_t attempt, Ranks ranks) {
  return StartOnPool{pool, {job, attempt}, std::move(ranks)};
}
Effect acknowledge(JobId job, PoolId pool, std::uint32_t attempt) {
  return AcknowledgeEnd{pool, {job, attempt}};
}

struct QueueTest : testing::Test {
  Queue queue;
  milliseconds now{1000};

  Effects put(const Input& input) { return queue.handle(input, now); }
  void run(JobId job, PoolId pool = pool_a, std::uint32_t attempt = 1) {
    put(RunBegan{pool, {job, attempt}});
  }
  Effects end(JobId job, RunOutcome outcome, std::string message = {}, std::uint32_t attempt = 1,
              PoolId pool = pool_a) {
    return put(RunOver{pool, {job, attempt}, outcome, std::move(message), {}});
  }
};

TEST_F(QueueTest, AJobWithoutAPoolWaits) {
  EXPECT_THAT(put(JobAccepted{1, 2}), IsEmpty());
  EXPECT_EQ(queue.state_of(1), JobState::queued);
}

TEST_F(QueueTest, AWaitingJobStartsWhenAPoolAttaches) {
  put(JobAccepted{1, 2});
  EXPECT_THAT(put(PoolAttached{pool_a, 4}),
              ElementsAre(starting(1, pool_a, 1, {0, 1}), start(1, pool_a, 1, {0, 1})));
}

TEST_F(QueueTest, AJobThatWantsMoreRanksThanThePoolHasGetsAllOfThem) {
  put(PoolAttached{pool_a, 2});
  EXPECT_THAT(put(JobAccepted{1, 8}),
              ElementsAre(starting(1, pool_a, 1, {0, 1}), start(1, pool_a, 1, {0, 1})));
}

TEST_F(QueueTest, SmallJobsRunSideBySideOnDisjointRanks) {
  put(PoolAttached{pool_a, 4});
  put(JobAccepted{1, 1});
  EXPECT_THAT(put(JobAccepted{2, 2}),
              ElementsAre(starting(2, pool_a, 1, {1, 2}), start(2, pool_a, 1, {1, 2})));
  EXPECT_THAT(queue.rank_jobs(pool_a), ElementsAre(1, 2, 2, 0));
}

TEST_F(QueueTest, NobodyOvertakesTheHeadOfTheQueue) {
  put(PoolAttached{pool_a, 4});
  put(JobAccepted{1, 2});
  EXPECT_THAT(put(JobAccepted{2, 4}), IsEmpty());
  EXPECT_THAT(put(JobAccepted{3, 1}), IsEmpty()) << "although a rank is free";
}

TEST_F(QueueTest, RanksThatBecomeFreeServeTheQueueInOrder) {
  put(PoolAttached{pool_a, 2});
  put(JobAccepted{1, 2});
  put(JobAccepted{2, 1});
  put(JobAccepted{3, 1});
  put(JobAccepted{4, 1});
  run(1);
  EXPECT_THAT(end(1, RunOutcome::succeeded),
              ElementsAre(state(1, JobState::succeeded, 1), acknowledge(1, pool_a, 1),
                          starting(2, pool_a, 1, {0}), start(2, pool_a, 1, {0}),
                          starting(3, pool_a, 1, {1}), start(3, pool_a, 1, {1})));
}

TEST_F(QueueTest, ARunThatBeginsIsRunningOnce) {
  put(PoolAttached{pool_a, 1});
  put(JobAccepted{1, 1});
  EXPECT_THAT(put(RunBegan{pool_a, {1, 1}}), ElementsAre(state(1, JobState::running, 1)));
  EXPECT_THAT(put(RunBegan{pool_a, {1, 1}}), IsEmpty());
}

TEST_F(QueueTest, TheOutcomeCarriesMessageAndSummary) {
  put(PoolAttached{pool_a, 1});
  put(JobAccepted{1, 1});
  EXPECT_THAT(
      put(RunOver{pool_a, {1, 1}, RunOutcome::succeeded, "diverged at tick 812", "{\"a\":1}"}),
      ElementsAre(state(1, JobState::succeeded, 1, "diverged at tick 812", "{\"a\":1}"),
                  acknowledge(1, pool_a, 1)));
}

TEST_F(QueueTest, AFailedRunIsNotStartedAgain) {
  put(PoolAttached{pool_a, 1});
  put(JobAccepted{1, 1});
  EXPECT_THAT(
      end(1, RunOutcome::failed, "x.libsvm:3: NaN"),
      ElementsAre(state(1, JobState::failed, 1, "x.libsvm:3: NaN"), acknowledge(1, pool_a, 1)));
  EXPECT_EQ(queue.state_of(1), std::nullopt);
}

TEST_F(QueueTest, TheEndOfAnUnknownRunIsOnlyAcknowledged) {
  put(PoolAttached{pool_a, 1});
  put(JobAccepted{1, 1});
  EXPECT_THAT(end(1, RunOutcome::succeeded, {}, 7), ElementsAre(acknowledge(1, pool_a, 7)));
  EXPECT_THAT(end(9, RunOutcome::succeeded), ElementsAre(acknowledge(9, pool_a, 1)));
  EXPECT_EQ(queue.state_of(1), JobState::starting);
}

TEST_F(QueueTest, ARunBelongsToThePoolThatGotIt) {
  put(PoolAttached{pool_a, 1});
  put(JobAccepted{1, 1});
  put(PoolAttached{pool_b, 1});
  EXPECT_THAT(put(RunBegan{pool_b, {1, 1}}), IsEmpty());
  EXPECT_THAT(end(1, RunOutcome::failed, {}, 1, pool_b), ElementsAre(acknowledge(1, pool_b, 1)));
  EXPECT_TRUE(queue.runs_on(pool_a, {1, 1}));
}

TEST_F(QueueTest, ARunOfALostPoolIsQueuedAgainAtItsOldPlace) {
  put(PoolAttached{pool_a, 1});
  put(JobAccepted{1, 1});
  put(JobAccepted{2, 1});
  EXPECT_THAT(put(PoolLost{pool_a, "connection closed"}),
              ElementsAre(state(1, JobState::queued, 1, "attempt 1 was lost: connection closed")));
  EXPECT_THAT(put(PoolAttached{pool_b, 1}),
              ElementsAre(starting(1, pool_b, 2, {0}), start(1, pool_b, 2, {0})));
}

TEST_F(QueueTest, APoolThatKeepsAliveAfterALostRunGetsItAgain) {
  put(PoolAttached{pool_a, 1});
  put(JobAccepted{1, 1});
  EXPECT_THAT(end(1, RunOutcome::lost, "rank 3 died"),
              ElementsAre(state(1, JobState::queued, 1, "attempt 1 was lost: rank 3 died"),
                          acknowledge(1, pool_a, 1), starting(1, pool_a, 2, {0}),
                          start(1, pool_a, 2, {0})));
}

TEST_F(QueueTest, TheThirdLostAttemptIsTheLast) {
  put(JobAccepted{1, 1});
  for (std::uint32_t attempt = 1; attempt <= 2; ++attempt) {
    put(PoolAttached{PoolId(attempt), 1});
    put(PoolLost{PoolId(attempt), "gone"});
  }
  put(PoolAttached{PoolId(3), 1});
  EXPECT_THAT(
      put(PoolLost{PoolId(3), "gone"}),
      ElementsAre(state(1, JobState::failed, 3, "attempt 3, the last one, was lost: gone")));
  EXPECT_THAT(put(PoolAttached{PoolId(4), 1}), IsEmpty());
}

TEST_F(QueueTest, ALostPoolTakesAllOfItsRunsAndNoOthers) {
  put(PoolAttached{pool_a, 2});
  put(JobAccepted{1, 1});
  put(JobAccepted{2, 1});
  put(PoolAttached{pool_b, 1});
  put(JobAccepted{3, 1});
  EXPECT_THAT(put(PoolLost{pool_a, "gone"}),
              ElementsAre(state(1, JobState::queued, 1, "attempt 1 was lost: gone"),
                          state(2, JobState::queued, 1, "attempt 1 was lost: gone")));
  EXPECT_TRUE(queue.runs_on(pool_b, {3, 1}));
}

TEST_F(QueueTest, AQueuedJobIsCancelledAtOnce) {
  put(JobAccepted{1, 1});
  EXPECT_THAT(put(CancelAsked{1}),
              ElementsAre(state(1, JobState::cancelled, 0, "cancelled before it began")));
  EXPECT_THAT(put(PoolAttached{pool_a, 1}), IsEmpty());
}

TEST_F(QueueTest, CancellingTheHeadLetsTheNextStart) {
  put(PoolAttached{pool_a, 2});
  put(JobAccepted{1, 1});
  put(JobAccepted{2, 2});
  put(JobAccepted{3, 1});
  EXPECT_THAT(put(CancelAsked{2}),
              ElementsAre(state(2, JobState::cancelled, 0, "cancelled before it began"),
                          starting(3, pool_a, 1, {1}), start(3, pool_a, 1, {1})));
}

TEST_F(QueueTest, ARunningJobIsCancelledWhenItsPoolAnswers) {
  put(PoolAttached{pool_a, 1});
  put(JobAccepted{1, 1});
  run(1);
  EXPECT_THAT(put(CancelAsked{1}),
              ElementsAre(Effect(StoreCancelAsked{1}), Effect(CancelOnPool{pool_a, {1, 1}})));
  EXPECT_THAT(put(CancelAsked{1}), IsEmpty()) << "asked once is enough";
  EXPECT_THAT(
      end(1, RunOutcome::cancelled, "cancelled"),
      ElementsAre(state(1, JobState::cancelled, 1, "cancelled"), acknowledge(1, pool_a, 1)));
}

TEST_F(QueueTest, ARunThatEndedBeforeItsCancelCameKeepsItsOutcome) {
  put(PoolAttached{pool_a, 1});
  put(JobAccepted{1, 1});
  put(CancelAsked{1});
  EXPECT_THAT(end(1, RunOutcome::succeeded),
              ElementsAre(state(1, JobState::succeeded, 1), acknowledge(1, pool_a, 1)));
}

TEST_F(QueueTest, ACancelledRunWhosePoolIsLostIsNotStartedAgain) {
  put(PoolAttached{pool_a, 1});
  put(JobAccepted{1, 1});
  put(CancelAsked{1});
  EXPECT_THAT(put(PoolLost{pool_a, "gone"}),
              ElementsAre(state(1, JobState::cancelled, 1, "cancelled; its run was lost: gone")));
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
              ElementsAre(Effect(DropPool{pool_a, why}),
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
  EXPECT_THAT(
      put(JobRestored{1, 1, JobState::running, 3, false}),
      ElementsAre(state(1, JobState::queued, 3, "attempt 3 was lost: the daemon was restarted")));
  EXPECT_THAT(put(JobRestored{2, 1, JobState::queued, 0, false}), IsEmpty());
  EXPECT_THAT(put(PoolAttached{pool_a, 1}),
              ElementsAre(starting(1, pool_a, 4, {0}), start(1, pool_a, 4, {0})));
}

TEST_F(QueueTest, ACancelIsRememberedOverARestart) {
  EXPECT_THAT(put(JobRestored{1, 1, JobState::running, 1, true}),
              ElementsAre(state(1, JobState::cancelled, 1, "cancelled while it ran")));
}

TEST_F(QueueTest, TheBoundCountsJobsThatHaveNotEnded) {
  Queue small({.jobs_max = 1});
  small.handle(JobAccepted{1, 1}, now);
  EXPECT_TRUE(small.full());
  small.handle(CancelAsked{1}, now);
  EXPECT_FALSE(small.full());
}

TEST_F(QueueTest, NothingStartsWhenTheDaemonIsAboutToEnd) {
  put(PoolAttached{pool_a, 1});
  queue.stop_starting();
  EXPECT_THAT(put(JobAccepted{1, 1}), IsEmpty());
}

TEST_F(QueueTest, ARunThatIsLostBecauseTheDaemonEndsNeverFails) {
  put(JobRestored{1, 1, JobState::running, 2, false});
  put(PoolAttached{pool_a, 1});
  queue.stop_starting();
  EXPECT_THAT(put(PoolLost{pool_a, "the daemon ends"}),
              ElementsAre(state(1, JobState::queued, 3, "attempt 3 was lost: the daemon ends")));
}

TEST_F(QueueTest, TheLargestShareOfRanksWins) {
  put(PoolAttached{pool_a, 2});
  put(PoolAttached{pool_b, 4});
  EXPECT_THAT(put(JobAccepted{1, 3}),
              ElementsAre(starting(1, pool_b, 1, {0, 1, 2}), start(1, pool_b, 1, {0, 1, 2})));
}

}  // namespace
}  // namespace pipewright::jobs
