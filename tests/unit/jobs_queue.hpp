// The daemon's queue under test, mostly with jobs of one run.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/jobs_text.hpp"

namespace pipewright::jobs {

using std::chrono::milliseconds;
using Ranks = std::vector<std::uint32_t>;

inline constexpr PoolId pool_a{1};
inline constexpr PoolId pool_b{2};

inline std::string state(JobId job, JobState state, std::uint32_t attempt,
                         std::string message = {}) {
  return text_of(StoreJob{job, state, std::move(message), attempt, {}, 0});
}
inline std::string starting(JobId job, std::uint32_t attempt) {
  return state(job, JobState::starting, attempt);
}
inline std::string start(JobId job, PoolId pool, std::uint32_t attempt, Ranks ranks) {
  return text_of(StartOnPool{pool, {job, 0, attempt}, std::move(ranks)});
}
inline std::string acknowledge(JobId job, PoolId pool, std::uint32_t attempt) {
  return text_of(AcknowledgeEnd{pool, {job, 0, attempt}});
}
inline JobRestored restored(JobId job, JobState state, std::uint32_t attempt, bool cancel_asked) {
  JobRestored job_restored;
  job_restored.job = job;
  job_restored.state = state;
  job_restored.attempt = attempt;
  job_restored.counts.total = 1;
  job_restored.cancel_asked = cancel_asked;
  if (attempt > 0) {
    job_restored.next_run = 1;
    job_restored.runs = {{0, state, attempt}};
  }
  return job_restored;
}

struct QueueTest : testing::Test {
  QueueLimits queue_limits;
  Queue queue{queue_limits};
  milliseconds now{1000};

  /// The effects but for StoreRun, which of a job of one run says the same as its StoreJob.
  std::vector<std::string> put(const Input& input) {
    std::vector<std::string> texts, of_runs;
    for (const Effect& effect : queue.handle(input, now)) {
      if (const auto* run = std::get_if<StoreRun>(&effect)) {
        EXPECT_EQ(run->run, 0u);
        of_runs.push_back(state(run->job, run->state, run->attempt, run->message));
        summary = run->summary_json;
      } else {
        texts.push_back(text_of(effect));
      }
    }
    for (const std::string& run : of_runs) EXPECT_THAT(texts, testing::Contains(run));
    return texts;
  }
  void run(JobId job, PoolId pool = pool_a, std::uint32_t attempt = 1) {
    put(RunBegan{pool, {job, 0, attempt}});
  }
  std::vector<std::string> end(JobId job, RunOutcome outcome, std::string message = {},
                               std::uint32_t attempt = 1, PoolId pool = pool_a) {
    return put(RunOver{pool, {job, 0, attempt}, outcome, std::move(message), {}});
  }
  std::string summary;  // of the last StoreRun
};

}  // namespace pipewright::jobs
