// Pools that lose the daemon and come back with their runs, and daemons that do so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/clock.hpp"
#include "tests/service/daemon_process.hpp"

namespace pipewright::test {
namespace {

using testing::HasSubstr;

/// All of the run's points from `first` to 100, which are then those of an undisturbed run.
void finish(const Client& client, FakePool& pool, RunId run, std::size_t first) {
  pool.send_points(run, first, 100 - first);
  pool.send_file(run, "objective.csv", "tick,updates,value\n0,0,1\n");
  pool.end(run);
  while (!std::holds_alternative<RunEndStored>(pool.receive().value())) {
  }
  const EventList all = events(client, run.job, "?limit=10000");
  expect_numbered(all.events, 1);
  const std::vector<Point> points = points_of(all);
  const std::vector<Point> expected = some_points(0, 100);
  ASSERT_EQ(points.size(), expected.size());
  for (std::size_t i = 0; i < points.size(); ++i) EXPECT_EQ(points[i].value, expected[i].value);
  EXPECT_EQ(show(client, run.job).state, JobState::succeeded);
  EXPECT_EQ(show(client, run.job).attempt, run.attempt);
}

/// A run that has begun, with 50 points stored.
RunId begin_run(FakePool& pool) {
  const RunId run = pool.expect<StartRun>().run;
  pool.send(RunStarted{run});
  pool.send_points(run, 0, 50);
  EXPECT_EQ(pool.expect<PointsStored>().next_index, 50u);
  return run;
}

struct Lease : testing::Test {
  TemporaryFolder folder;
  RunningDaemon daemon{{.data_dir = folder.path() / "data"}};
  Client client = daemon.client();
};

TEST_F(Lease, APoolThatIsCutOffGoesOnWithItsRunAndAStreamSeesNothingOfIt) {
  const std::uint32_t id = submit(client);
  Watcher watcher(client, id);
  RunId run{};
  {
    FakePool pool(client, "p", "one", {});
    run = begin_run(pool);
    pool.close();
  }
  FakePool pool(client, "p", "one", {run});
  finish(client, pool, run, 20);  // some of them are said twice
  EXPECT_TRUE(watcher.until<JobEnded>());
  expect_numbered(watcher.events(), 1);
}

TEST_F(Lease, APoolMayNoticeTheCutBeforeTheDaemonDoes) {
  submit(client);
  FakePool before(client, "p", "one", {});
  const RunId run = begin_run(before);
  FakePool pool(client, "p", "one", {run});
  EXPECT_FALSE(before.receive()) << "the old connection is closed";
  EXPECT_FALSE(pool.refused());
  finish(client, pool, run, 50);
}

TEST_F(Lease, AnotherPoolOfTheSameNameShowsThatTheFirstIsGone) {
  const std::uint32_t id = submit(client);
  {
    FakePool pool(client, "p", "one", {});
    begin_run(pool);
    FakePool other(client, "p", "two", {});
    EXPECT_THAT(other.refused().value().reason, HasSubstr("already")) << "while it is attached";
    pool.close();
  }
  auto second = std::make_unique<FakePool>(client, "p", "two", std::vector<RunId>());
  while (second->refused()) {  // until the daemon has seen the close
    second = std::make_unique<FakePool>(client, "p", "two", std::vector<RunId>());
  }
  EXPECT_EQ(second->expect<StartRun>().run, (RunId{id, 0, 2}));
  std::vector<std::string> messages;
  for (const Event& event : events(client, id).events) {
    if (const auto* state = std::get_if<StateChange>(&event.what)) {
      messages.push_back(state->message);
    }
  }
  EXPECT_THAT(messages,
              testing::Contains("attempt 1 was lost: the connection was closed; another pool has "
                                "come in its place"));
}

TEST_F(Lease, APoolThatIsAwayCanBeGivenUpAndItsRunStartsElsewhereAtOnce) {
  const std::string target = "/v1/pools/rack%2F1%20p/drop";
  EXPECT_EQ(client.send("POST", target).status, 404);
  const std::uint32_t id = submit(client);
  auto lost = std::make_unique<FakePool>(client, "rack/1 p", "one", std::vector<RunId>());
  const RunId run = begin_run(*lost);
  const Reply attached = client.send("POST", target);
  EXPECT_EQ(attached.status, 409);
  EXPECT_THAT(attached.body, HasSubstr("pool 'rack/1 p' is not away"));
  lost->close();
  PoolInfo away;
  while (away.state != "away") {  // until the daemon has seen the close
    away = decode<PoolList>(client.get("/v1/pools").body, WireFormat::json).pools.at(0);
  }
  EXPECT_THAT(away.rank_jobs, testing::Contains(id));
  EXPECT_GT(away.lease_ends_unix_ms, away.heartbeat_unix_ms);
  EXPECT_LE(away.lease_ends_unix_ms, unix_ms() + 60'000);

  const Reply dropped = client.send("POST", target);
  ASSERT_EQ(dropped.status, 200) << dropped.body;
  EXPECT_EQ(decode<PoolInfo>(dropped.body, WireFormat::json).name, "rack/1 p");
  EXPECT_EQ(client.send("POST", target).status, 404);
  EXPECT_EQ(show(client, id).state, JobState::queued);
  EXPECT_THAT(client.get("/v1/jobs/" + std::to_string(id) + "/events").body,
              HasSubstr("attempt 1 was given back: the connection was closed; it was given up by "
                        "admin"));
  FakePool other(client, "other", "two", {});
  const RunId again = begin_run(other);
  EXPECT_EQ(again, (RunId{id, 0, 2}));
  FakePool back(client, "rack/1 p", "one", {run});
  EXPECT_EQ(back.expect<CancelRun>().run, run);
  finish(client, other, again, 50);
}

TEST_F(Lease, ARunThatNeverReachedItsPoolStartsAgain) {
  const std::uint32_t id = submit(client);
  {
    FakePool pool(client, "p", "one", {});
    pool.expect<StartRun>();
    pool.close();
  }
  FakePool pool(client, "p", "one", {});
  EXPECT_EQ(pool.expect<StartRun>().run, (RunId{id, 0, 2}));
}

TEST_F(Lease, ARunThatTheDaemonDoesNotKnowIsCancelled) {
  const RunId unknown{7, 0, 1};
  FakePool pool(client, "p", "one", {unknown});
  EXPECT_EQ(pool.expect<CancelRun>().run, unknown);
  pool.end(unknown, RunOutcome::cancelled);
  EXPECT_EQ(pool.expect<RunEndStored>().run, unknown);
}

TEST(LeaseTime, AfterItTheRunsAreQueuedAgain) {
  TemporaryFolder folder;
  ServiceLimits limits;
  limits.queue.lease = std::chrono::milliseconds(300);
  RunningDaemon daemon({.data_dir = folder.path() / "data", .service = limits});
  const Client client = daemon.client();
  const std::uint32_t id = submit(client);
  RunId run{};
  {
    FakePool pool(client, "p", "one", {});
    run = begin_run(pool);
    pool.close();
  }
  EXPECT_THAT(wait_for(client, id, JobState::queued).message,
              HasSubstr("attempt 1 was given back: the connection was closed; its pool did not "
                        "come back within 300 ms"));
  FakePool late(client, "p", "one", {run});
  EXPECT_EQ(late.expect<CancelRun>().run, run);
}

struct KilledDaemon : DaemonProcess {};

TEST_F(KilledDaemon, GoesOnWithTheRunsOfPoolsThatComeBack) {
  auto process = launch();
  RunId run{};
  {
    const Client client = client_of(*process);
    submit(client);
    FakePool pool(client, "p", "one", {});
    run = begin_run(pool);
    EXPECT_EQ(process->kill(SIGKILL), -SIGKILL);
  }
  process = launch();
  const Client client = client_of(*process);
  EXPECT_THAT(show(client, run.job).state, testing::AnyOf(JobState::starting, JobState::running));
  FakePool other(client, "other", 1);
  FakePool pool(client, "p", "one", {run});
  pool.send(RunStarted{run});
  finish(client, pool, run, 50);
  EXPECT_EQ(process->kill(SIGTERM), 0);
}

TEST_F(KilledDaemon, AnswersTheEndOfARunThatItHasStoredBefore) {
  auto process = launch();
  RunId run{};
  {
    const Client client = client_of(*process);
    submit(client);
    FakePool pool(client, "p", "one", {});
    run = begin_run(pool);
    finish(client, pool, run, 50);
    EXPECT_EQ(process->kill(SIGKILL), -SIGKILL);
  }
  process = launch();
  const Client client = client_of(*process);
  FakePool pool(client, "p", "one", {run});
  EXPECT_EQ(pool.expect<CancelRun>().run, run);
  pool.end(run);
  EXPECT_EQ(pool.expect<RunEndStored>().run, run);
  EXPECT_EQ(show(client, run.job).state, JobState::succeeded);
  EXPECT_EQ(process->kill(SIGTERM), 0);
}

}  // namespace
}  // namespace pipewright::test
