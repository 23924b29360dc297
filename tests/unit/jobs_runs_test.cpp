// The daemon's queue with jobs of many runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/unit/jobs_text.hpp"

namespace pipewright::jobs {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr PoolId pool_a{1};
constexpr PoolId pool_b{2};

struct ManyRunsTest : testing::Test {
  Queue queue;
  milliseconds now{1000};
  std::map<JobId, StoreJob> jobs;  // as they were stored last

  std::vector<std::string> put(const Input& input) {
    std::vector<std::string> texts;
    for (const Effect& effect : queue.handle(input, now)) {
      if (const auto* job = std::get_if<StoreJob>(&effect)) jobs[job->job] = *job;
      texts.push_back(text_of(effect));
    }
    return texts;
  }
  /// The effects of one kind: those that begin with `word`.
  std::vector<std::string> only(const std::string& word, const std::vector<std::string>& texts) {
    std::vector<std::string> found;
    for (const std::string& text : texts) {
      if (text.starts_with(word)) found.push_back(text);
    }
    return found;
  }
  std::vector<std::string> end(RunId run, RunOutcome outcome = RunOutcome::succeeded,
                               std::string message = {}, PoolId pool = pool_a) {
    return put(RunOver{pool, run, outcome, std::move(message), {}});
  }
  RunCounts counts(JobId job) { return jobs.at(job).counts; }
};

TEST_F(ManyRunsTest, RunsStartSideBySideOnDisjointRanksInTheirOrder) {
  put(PoolAttached{pool_a, 4});
  EXPECT_THAT(
      put(JobAccepted{1, 2, 3}),
      ElementsAre("run 1.0/1 STARTING", "start 1.0/1 on pool 1, ranks 0 1", "run 1.1/1 STARTING",
                  "start 1.1/1 on pool 1, ranks 2 3", "job 1 STARTING attempt 1"));
  EXPECT_THAT(queue.rank_jobs(pool_a), ElementsAre(1, 1, 1, 1));
  EXPECT_EQ(counts(1), (RunCounts{3, 2, 0, 0, 0}));
  EXPECT_THAT(put(RunBegan{pool_a, {1, 1, 1}}),
              ElementsAre("run 1.1/1 RUNNING", "job 1 RUNNING attempt 1"));
  now += milliseconds(5000);
  EXPECT_THAT(end({1, 1, 1}),
              ElementsAre("run 1.1/1 SUCCEEDED", "acknowledge 1.1/1 on pool 1",
                          "job 1 RUNNING attempt 1", "run 1.2/1 STARTING",
                          "start 1.2/1 on pool 1, ranks 2 3", "job 1 RUNNING attempt 1"));
  EXPECT_EQ(counts(1), (RunCounts{3, 2, 1, 0, 0}));
}

TEST_F(ManyRunsTest, TheJobEndsWithItsLastRun) {
  put(PoolAttached{pool_a, 2});
  put(JobAccepted{1, 1, 2});
  EXPECT_THAT(only("job", end({1, 0, 1})), ElementsAre("job 1 RUNNING attempt 1"));
  EXPECT_THAT(end({1, 1, 1}, RunOutcome::succeeded, "diverged at tick 9"),
              ElementsAre("run 1.1/1 SUCCEEDED 'diverged at tick 9'", "acknowledge 1.1/1 on pool 1",
                          "job 1 SUCCEEDED attempt 1"));
  EXPECT_EQ(queue.state_of(1), std::nullopt);
}

TEST_F(ManyRunsTest, AFailedRunDoesNotStopTheOthersAndTheJobSaysWhich) {
  put(PoolAttached{pool_a, 3});
  put(JobAccepted{1, 1, 3});
  end({1, 2, 1}, RunOutcome::failed, "out of memory");
  end({1, 1, 1}, RunOutcome::failed, "x.npy: is not there");
  EXPECT_EQ(queue.state_of(1), JobState::running);
  EXPECT_THAT(
      only("job", end({1, 0, 1})),
      ElementsAre("job 1 FAILED attempt 1 '2 of 3 runs failed; run 1: x.npy: is not there'"));
}

TEST_F(ManyRunsTest, TheNextJobWaitsUntilTheLastRunHasStarted) {
  put(PoolAttached{pool_a, 2});
  put(JobAccepted{1, 1, 3});
  EXPECT_THAT(put(JobAccepted{2, 1, 1}), IsEmpty());
  now += milliseconds(5000);
  EXPECT_THAT(only("start", end({1, 0, 1})), ElementsAre("start 1.2/1 on pool 1, ranks 0"));
  EXPECT_THAT(only("start", end({1, 1, 1})), ElementsAre("start 2.0/1 on pool 1, ranks 1"));
}

TEST_F(ManyRunsTest, ShortRunsAreGivenInAdvanceToTheRanksWithTheLeastToDo) {
  put(PoolAttached{pool_a, 2});
  put(JobAccepted{1, 1, 100});
  now += milliseconds(50);
  EXPECT_THAT(only("start", end({1, 0, 1})),
              ElementsAre("start 1.2/1 on pool 1, ranks 0", "start 1.3/1 on pool 1, ranks 1",
                          "start 1.4/1 on pool 1, ranks 0", "start 1.5/1 on pool 1, ranks 1",
                          "start 1.6/1 on pool 1, ranks 0"))
      << "three for each: the one under way, and 100 ms of those of 50 ms";
  EXPECT_EQ(counts(1).under_way, 6u);
}

TEST_F(ManyRunsTest, LongRunsAreNotGivenInAdvance) {
  put(PoolAttached{pool_a, 2});
  put(JobAccepted{1, 1, 100});
  now += milliseconds(101);
  EXPECT_THAT(only("start", end({1, 0, 1})), ElementsAre("start 1.2/1 on pool 1, ranks 0"));
}

TEST_F(ManyRunsTest, RanksAreFreeWhenTheLastOfTheirRunsHasEnded) {
  put(PoolAttached{pool_a, 1});
  put(JobAccepted{1, 1, 3});
  end({1, 0, 1});
  EXPECT_EQ(counts(1).under_way, 2u) << "of no time at all, so one is given in advance";
  end({1, 1, 1});
  EXPECT_THAT(queue.rank_jobs(pool_a), ElementsAre(1));
  end({1, 2, 1});
  EXPECT_THAT(queue.rank_jobs(pool_a), ElementsAre(0));
}

TEST_F(ManyRunsTest, CancellingDropsWhatWaitsAndCancelsWhatRuns) {
  put(PoolAttached{pool_a, 2});
  put(JobAccepted{1, 1, 20'000});
  end({1, 1, 1}, RunOutcome::lost, "rank 1 died");
  EXPECT_THAT(put(CancelAsked{1}),
              ElementsAre("cancel of job 1 asked", "cancel 1.0/1 on pool 1",
                          "cancel 1.1/2 on pool 1", "job 1 STARTING attempt 2"));
  EXPECT_EQ(counts(1), (RunCounts{20'000, 2, 0, 0, 19'998}));
  end({1, 0, 1});
  EXPECT_THAT(only("job", end({1, 1, 2}, RunOutcome::cancelled)),
              ElementsAre("job 1 CANCELLED attempt 2 'cancelled; 1 of 20000 runs had ended'"));
}

TEST_F(ManyRunsTest, RunsThatWaitToRunAgainAreCancelledOneByOne) {
  put(PoolAttached{pool_a, 2});
  put(JobAccepted{1, 1, 5});
  put(PoolLost{pool_a, "gone"});
  EXPECT_THAT(put(CancelAsked{1}),
              ElementsAre("run 1.0/1 CANCELLED 'cancelled while it waited to run again'",
                          "run 1.1/1 CANCELLED 'cancelled while it waited to run again'",
                          "job 1 CANCELLED attempt 1 'cancelled; 0 of 5 runs had ended'"));
}

TEST_F(ManyRunsTest, TheRunsOfALostPoolRunAgainBeforeThoseThatHaveNeverBegun) {
  put(PoolAttached{pool_a, 2});
  put(JobAccepted{1, 1, 5});
  now += milliseconds(5000);
  end({1, 0, 1});
  EXPECT_THAT(
      put(PoolLost{pool_a, "gone"}),
      ElementsAre("run 1.1/1 QUEUED 'attempt 1 was lost: gone'",
                  "run 1.2/1 QUEUED 'attempt 1 was lost: gone'", "job 1 RUNNING attempt 1"));
  EXPECT_THAT(only("start", put(PoolAttached{pool_b, 4})),
              ElementsAre("start 1.1/2 on pool 2, ranks 0", "start 1.2/2 on pool 2, ranks 1",
                          "start 1.3/1 on pool 2, ranks 2", "start 1.4/1 on pool 2, ranks 3"));
}

TEST_F(ManyRunsTest, ARunThatWasGivenInAdvanceDoesNotLoseAnAttempt) {
  put(PoolAttached{pool_a, 1});
  put(JobAccepted{1, 1, 3});
  end({1, 0, 1});  // in no time, so both others are given to the rank
  EXPECT_THAT(only("run", put(PoolLost{pool_a, "gone"})),
              ElementsAre("run 1.1/1 QUEUED 'attempt 1 was lost: gone'",
                          "run 1.2/0 QUEUED 'lost before it began: gone'"));
  EXPECT_THAT(only("start", put(PoolAttached{pool_b, 1})),
              ElementsAre("start 1.1/2 on pool 2, ranks 0", "start 1.2/1 on pool 2, ranks 0"));
}

TEST_F(ManyRunsTest, OneRunThatTakesItsPoolAlongFailsAlone) {
  put(JobAccepted{1, 1, 2});
  for (std::uint32_t pool = 1; pool <= 3; ++pool) {
    put(PoolAttached{PoolId(pool), 1});
    put(PoolLost{PoolId(pool), "gone"});
  }
  EXPECT_EQ(counts(1), (RunCounts{2, 0, 0, 1, 0}));
  EXPECT_THAT(only("start", put(PoolAttached{PoolId(4), 1})),
              ElementsAre("start 1.1/1 on pool 4, ranks 0"));
  EXPECT_THAT(only("job", end({1, 1, 1}, RunOutcome::succeeded, {}, PoolId(4))),
              ElementsAre("job 1 FAILED attempt 3 '1 of 2 runs failed; run 0: attempt 3, the last "
                          "one, was lost: gone'"));
}

TEST_F(ManyRunsTest, ARestoredJobGoesOnWithWhatHadNotEnded) {
  JobRestored job;
  job.job = 1;
  job.state = JobState::running;
  job.attempt = 2;
  job.counts = {10, 2, 4, 1, 0};
  job.next_run = 8;
  job.runs = {{3, JobState::running, 2}, {5, JobState::starting, 1}, {7, JobState::queued, 1}};
  job.first_failed = FailedRun{2, "bad data"};
  EXPECT_THAT(put(job),
              ElementsAre("run 1.3/2 QUEUED 'attempt 2 was lost: the daemon was restarted'",
                          "run 1.5/1 QUEUED 'attempt 1 was lost: the daemon was restarted'",
                          "job 1 RUNNING attempt 2"));
  EXPECT_THAT(only("start", put(PoolAttached{pool_a, 8})),
              ElementsAre("start 1.3/3 on pool 1, ranks 0", "start 1.5/2 on pool 1, ranks 1",
                          "start 1.7/2 on pool 1, ranks 2", "start 1.8/1 on pool 1, ranks 3",
                          "start 1.9/1 on pool 1, ranks 4"));
  for (const RunId run : {RunId{1, 3, 3}, {1, 5, 2}, {1, 7, 2}, {1, 8, 1}}) end(run);
  EXPECT_THAT(only("job", end({1, 9, 1})),
              ElementsAre("job 1 FAILED attempt 3 '1 of 10 runs failed; run 2: bad data'"));
}

TEST_F(ManyRunsTest, ACancelIsRememberedOverARestart) {
  JobRestored job;
  job.job = 1;
  job.state = JobState::running;
  job.attempt = 1;
  job.counts = {10, 2, 1, 0, 7};
  job.next_run = 3;
  job.cancel_asked = true;
  job.runs = {{1, JobState::running, 1}, {2, JobState::running, 1}};
  EXPECT_THAT(put(job),
              ElementsAre("run 1.1/1 CANCELLED 'cancelled while it ran'",
                          "run 1.2/1 CANCELLED 'cancelled while it ran'",
                          "job 1 CANCELLED attempt 1 'cancelled; 1 of 10 runs had ended'"));
}

TEST_F(ManyRunsTest, EveryOneOfManyRunsStartsOnceAndEndsOnce) {
  constexpr std::uint32_t runs = 20'000;
  put(PoolAttached{pool_a, 7});
  std::vector<RunId> under_way;
  std::vector<int> started(runs);
  const auto take = [&](const Effects& effects) {
    for (const Effect& effect : effects) {
      if (const auto* start = std::get_if<StartOnPool>(&effect)) {
        under_way.push_back(start->run);
        ++started[start->run.run];
      } else if (const auto* job = std::get_if<StoreJob>(&effect)) {
        jobs[1] = *job;
      }
    }
  };
  take(queue.handle(JobAccepted{1, 2, runs}, now));
  while (!under_way.empty()) {
    const RunId run = under_way.front();
    under_way.erase(under_way.begin());
    take(queue.handle(RunOver{pool_a, run, RunOutcome::succeeded, {}, {}}, ++now));
  }
  EXPECT_EQ(std::count(started.begin(), started.end(), 1), runs);
  EXPECT_EQ(jobs.at(1).state, JobState::succeeded);
  EXPECT_EQ(counts(1), (RunCounts{runs, 0, runs, 0, 0}));
}

}  // namespace
}  // namespace pipewright::jobs
