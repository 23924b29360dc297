// Runs: what a pool and the daemon say to each other, and what clients see of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/base/text.hpp"
#include "proto/codec/checkpoint_folder.hpp"
#include "tests/service/support.hpp"

namespace pipewright::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct PoolTest : testing::Test {
  TemporaryFolder folder;
  RunningDaemon daemon{{.data_dir = folder.path() / "data"}};
  Client client = daemon.client();

  /// The run of a small job, which the pool has begun.
  StartRun begin(FakePool& pool) {
    const std::uint32_t id = submit(client);
    const StartRun start = pool.expect<StartRun>();
    pool.send(RunStarted{start.run});
    wait_for(client, id, JobState::running);
    return start;
  }
  std::vector<JobState> states(std::uint32_t id) {
    std::vector<JobState> states;
    for (const Event& event : events(client, id, "?kind=state").events) {
      states.push_back(std::get<StateChange>(event.what).state);
    }
    return states;
  }
  void expect_points(std::uint32_t id, std::size_t count) {
    const std::vector<Point> got = points_of(events(client, id, "?kind=point&limit=10000"));
    const std::vector<Point> wanted = some_points(0, count);
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].tick, wanted[i].tick);
      EXPECT_EQ(got[i].value, wanted[i].value);
    }
  }
};

TEST_F(PoolTest, ARunGoesThroughItsStates) {
  FakePool pool(client);
  const std::uint32_t id = submit(client, small_job(2));
  const StartRun start = pool.expect<StartRun>();
  EXPECT_EQ(start.run, (RunId{id, 0, 1}));
  EXPECT_THAT(start.ranks, ElementsAre(0, 1));
  EXPECT_EQ(find_path(start.spec, "schedule.pipedream.stages")->as_integer(), 2);
  EXPECT_EQ(show(client, id).state, JobState::starting);
  pool.send(RunStarted{start.run});
  pool.send(RunProgress{start.run, {5, 10, 1, 2, 1, 2, {}}});
  Job job = wait_for(client, id, JobState::running);
  EXPECT_EQ(job.pool, "fake");
  EXPECT_THAT(job.ranks, ElementsAre(0, 1));
  EXPECT_GT(job.started_unix_ms, 0);
  pool.send_points(start.run, 0, 10);
  const PointsStored stored = pool.expect<PointsStored>();
  EXPECT_EQ(stored.next_index, 10u);
  expect_points(id, 10);
  pool.send(RunLog{start.run, {Severity::warning, "a straggler"}});
  pool.end(start.run, RunOutcome::succeeded, "diverged at tick 9");
  pool.expect<RunEndStored>();
  job = show(client, id);
  EXPECT_EQ(job.state, JobState::succeeded) << "it is in the store when it is acknowledged";
  EXPECT_EQ(job.message, "diverged at tick 9");
  EXPECT_EQ(job.summary_json, "{\"job\": 1}");
  EXPECT_EQ(decode<JobList>(client.get("/v1/jobs").body, WireFormat::json).jobs.at(0).summary_json,
            "")
      << "lists are short";
  EXPECT_EQ(job.progress.ticks_total, 10);
  EXPECT_EQ(job.objective_last, some_points(8, 1)[0].value);
  EXPECT_EQ(job.attempt, 1u);
  EXPECT_THAT(states(id), ElementsAre(JobState::queued, JobState::starting, JobState::running,
                                      JobState::succeeded));
}

TEST_F(PoolTest, TwoHundredTinyJobsStartInOrderAndAllEnd) {
  std::vector<std::uint32_t> submitted;
  for (int i = 0; i < 200; ++i) submitted.push_back(submit(client));
  FakePool pool(client, "fake", 3);  // now: one that says nothing meanwhile would be dropped
  std::vector<std::uint32_t> started;
  std::size_t ended = 0;
  while (ended < 200) {
    const std::optional<DaemonFrame> frame = pool.receive();
    ASSERT_TRUE(frame);
    if (const auto* start = std::get_if<StartRun>(&*frame)) {
      started.push_back(start->run.job);
      pool.run(*start, 3);
    } else if (std::holds_alternative<RunEndStored>(*frame)) {
      ++ended;
    }
  }
  EXPECT_EQ(started, submitted);
  const JobList list =
      decode<JobList>(client.get("/v1/jobs?limit=1000&state=SUCCEEDED").body, WireFormat::json);
  EXPECT_EQ(list.jobs.size(), 200u);
  expect_points(1, 3);
  expect_points(200, 3);
}

TEST_F(PoolTest, JobsRunSideBySideOnDisjointRanks) {
  FakePool pool(client, "fake", 4);
  submit(client, small_job(2));
  submit(client, small_job(2));
  submit(client, small_job(1));
  EXPECT_THAT(pool.expect<StartRun>().ranks, ElementsAre(0, 1));
  EXPECT_THAT(pool.expect<StartRun>().ranks, ElementsAre(2, 3));
  const PoolList list = decode<PoolList>(client.get("/v1/pools").body, WireFormat::json);
  ASSERT_EQ(list.pools.size(), 1u);
  EXPECT_THAT(list.pools[0].rank_jobs, ElementsAre(1, 1, 2, 2));
  EXPECT_THAT(list.pools[0].rank_hosts, ElementsAre("here", "here", "here", "here"));
  EXPECT_EQ(list.pools[0].state, "attached");
  pool.end({1, 0, 1});
  pool.expect<RunEndStored>();
  EXPECT_THAT(pool.expect<StartRun>().ranks, ElementsAre(0));
}

TEST_F(PoolTest, ASmallPoolGivesAllOfItsRanks) {
  FakePool pool(client, "fake", 2);
  submit(client, small_job(8));
  EXPECT_THAT(pool.expect<StartRun>().ranks, ElementsAre(0, 1));
}

TEST_F(PoolTest, TheSecondAttemptRepeatsItsPointsWithoutDuplicates) {
  const std::uint32_t id = submit(client);
  {
    FakePool pool(client);
    const StartRun start = pool.expect<StartRun>();
    pool.send(RunStarted{start.run});
    pool.send_points(start.run, 0, 50);
    pool.expect<PointsStored>();
    pool.close();
  }
  wait_for(client, id, JobState::queued);
  FakePool pool(client, "second");
  const StartRun start = pool.expect<StartRun>();
  EXPECT_EQ(start.run, (RunId{id, 0, 2}));
  pool.send(RunStarted{start.run});
  pool.send_points(start.run, 0, 30);
  EXPECT_EQ(pool.expect<PointsStored>().next_index, 30u);
  pool.send_points(start.run, 30, 70);
  EXPECT_EQ(pool.expect<PointsStored>().next_index, 100u);
  pool.end(start.run);
  pool.expect<RunEndStored>();
  const Job job = show(client, id);
  EXPECT_EQ(job.state, JobState::succeeded);
  EXPECT_EQ(job.attempt, 2u);
  expect_points(id, 100);
  const EventList all = events(client, id, "?limit=10000");
  expect_numbered(all.events, 1);
  EXPECT_THAT(states(id),
              ElementsAre(JobState::queued, JobState::starting, JobState::running, JobState::queued,
                          JobState::starting, JobState::running, JobState::succeeded));
}

TEST_F(PoolTest, AnAttemptByAnotherBinaryOrOnAnotherCpuIsToldOfThoseBefore) {
  const Maker intel{"0.1.0", "abc", "b1", "Intel"};
  const Maker amd{"0.1.0", "abc", "b1", "AMD"};
  const std::uint32_t id = submit(client);
  const auto attempt = [&](const std::string& name, const Maker& maker) {
    FakePool pool(client, name);
    const StartRun start = pool.expect<StartRun>();
    pool.send(RunStarted{start.run, maker});
    wait_for(client, id, JobState::running);
    pool.send(PoolGoodbye{"time limit"});
    wait_for(client, id, JobState::queued);
    return start.makers;
  };
  EXPECT_THAT(attempt("first", intel), IsEmpty());
  EXPECT_THAT(attempt("second", intel), ElementsAre(intel));
  EXPECT_THAT(show(client, id).makers, ElementsAre(intel)) << "the same made both";
  EXPECT_THAT(attempt("third", amd), ElementsAre(intel));
  {
    FakePool never_began(client, "fourth");
    EXPECT_THAT(never_began.expect<StartRun>().makers, ElementsAre(intel, amd));
    never_began.send(PoolGoodbye{"time limit"});
    wait_for(client, id, JobState::queued);
  }
  EXPECT_THAT(attempt("of an older version", {}), ElementsAre(intel, amd));
  FakePool pool(client, "last");
  const StartRun start = pool.expect<StartRun>();
  EXPECT_THAT(start.makers, ElementsAre(intel, amd));
  pool.send(RunStarted{start.run, intel});
  pool.end(start.run);
  pool.expect<RunEndStored>();
  EXPECT_THAT(show(client, id).makers, ElementsAre(intel, amd));
  const RunList runs = decode<RunList>(client.get("/v1/jobs/1/runs").body, WireFormat::json);
  EXPECT_THAT(runs.runs.at(0).makers, ElementsAre(intel, amd));
}

TEST_F(PoolTest, ARunThatIsUnderWayShowsItsNewestCheckpoint) {
  FakePool pool(client);
  const StartRun start = begin(pool);
  const std::uint32_t id = start.run.job;
  EXPECT_FALSE(show(client, id).checkpoint);
  CheckpointPart part;
  part.origin = {"program", "job", "data"};
  part.tick = Tick(20);
  part.rows = 1;
  std::uint64_t bytes = 0;
  for (const std::int32_t row : {0, CheckpointPart::values_row}) {
    part.row = row;
    pool.send(CheckpointChunk{start.run, part.name(), 0, part.encode(), true});
    bytes += part.encode().size();
  }
  pool.send(CheckpointSent{start.run, Tick(20)});
  pool.expect<CheckpointStored>();
  const Job job = show(client, id);
  ASSERT_TRUE(job.checkpoint);
  EXPECT_EQ(job.checkpoint->tick, 20);
  EXPECT_EQ(job.checkpoint->bytes, bytes);
  EXPECT_GE(job.checkpoint->stored_unix_ms, job.started_unix_ms - 1000);
  const RunList runs = decode<RunList>(client.get("/v1/jobs/1/runs").body, WireFormat::json);
  EXPECT_EQ(runs.runs.at(0).checkpoint, job.checkpoint);
  pool.end(start.run);
  pool.expect<RunEndStored>();
  EXPECT_FALSE(show(client, id).checkpoint) << "it is not kept";
}

TEST_F(PoolTest, AJobThatLosesThreePoolsFails) {
  const std::uint32_t id = submit(client);
  for (std::uint32_t attempt = 1; attempt <= 3; ++attempt) {
    FakePool pool(client, "pool" + std::to_string(attempt));
    EXPECT_EQ(pool.expect<StartRun>().run.attempt, attempt);
  }
  EXPECT_THAT(wait_for(client, id, JobState::failed).message,
              HasSubstr("attempt 3, the last one, was lost"));
}

TEST_F(PoolTest, ARunningJobIsCancelledByItsPool) {
  FakePool pool(client);
  const StartRun start = begin(pool);
  const std::uint32_t id = start.run.job;
  const Reply reply = client.send("POST", "/v1/jobs/1/cancel");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(decode<Job>(reply.body, WireFormat::json).state, JobState::running);
  EXPECT_EQ(pool.expect<CancelRun>().run, start.run);
  EXPECT_EQ(client.send("POST", "/v1/jobs/1/cancel").status, 200) << "asked twice, done once";
  pool.end(start.run, RunOutcome::cancelled, "cancelled at tick 4");
  pool.expect<RunEndStored>();
  EXPECT_EQ(show(client, id).state, JobState::cancelled);
  EXPECT_EQ(show(client, id).message, "cancelled at tick 4");
}

TEST_F(PoolTest, AFailedRunTellsWhy) {
  FakePool pool(client);
  const std::uint32_t id = submit(client);
  pool.end(pool.expect<StartRun>().run, RunOutcome::failed, "/data/x.npy: byte 17: NaN");
  pool.expect<RunEndStored>();
  const Job job = show(client, id);
  EXPECT_EQ(job.state, JobState::failed);
  EXPECT_EQ(job.message, "/data/x.npy: byte 17: NaN");
}

TEST_F(PoolTest, APoolThatLeavesGivesItsRunsBack) {
  const std::uint32_t id = submit(client);
  FakePool pool(client);
  pool.expect<StartRun>();
  pool.send(PoolGoodbye{"time limit"});
  EXPECT_THAT(wait_for(client, id, JobState::queued).message, HasSubstr("time limit"));
}

TEST_F(PoolTest, AnAttachedPoolIsToldOfTheEnd) {
  FakePool pool(client);
  std::thread ending([&] { daemon.stop(); });
  EXPECT_EQ(pool.expect<ShutDown>().reason, "the test ends");
  pool.close();
  ending.join();
}

}  // namespace
}  // namespace pipewright::test
