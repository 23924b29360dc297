// Streams: history, then live, then the end; slow clients.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/service/support.hpp"

namespace pipewright::test {
namespace {

using testing::HasSubstr;

struct StreamTest : testing::Test {
  TemporaryFolder folder;
  RunningDaemon daemon{{.data_dir = folder.path() / "data"}};
  Client client = daemon.client();
};

TEST_F(StreamTest, HistoryThenLiveThenTheEnd) {
  FakePool pool(client);
  const std::uint32_t id = submit(client);
  const StartRun start = pool.expect<StartRun>();
  pool.send(RunStarted{start.run});
  pool.send_points(start.run, 0, 2000);
  pool.expect<PointsStored>();
  Watcher watcher(client, id);
  const auto live = watcher.until<LiveFromHere>();
  ASSERT_TRUE(live);
  EXPECT_EQ(live->job.state, JobState::running);
  EXPECT_EQ(watcher.events().size(), 2003u) << "QUEUED, STARTING, RUNNING and the points";
  pool.send_points(start.run, 2000, 10);
  ASSERT_TRUE(watcher.until_events(2013));
  pool.send(RunProgress{start.run, {5, 10, 1, 2, 1, 2, {}}});
  EXPECT_EQ(watcher.until<Progress>()->ticks_total, 10);
  pool.end(start.run);
  const auto ended = watcher.until<JobEnded>();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->job.state, JobState::succeeded);
  EXPECT_FALSE(watcher.receive()) << "the daemon closes after it";
  EXPECT_EQ(watcher.events().size(), 2014u);
  expect_numbered(watcher.events(), 1);
}

TEST_F(StreamTest, AJobThatHasEndedIsReplayed) {
  FakePool pool(client);
  const std::uint32_t id = submit(client);
  pool.run(pool.expect<StartRun>(), 20);
  wait_for(client, id, JobState::succeeded);
  Watcher watcher(client, id, "?format=json");
  ASSERT_TRUE(watcher.until<LiveFromHere>());
  EXPECT_TRUE(watcher.until<JobEnded>());
  EXPECT_EQ(watcher.events().size(), 24u);
  expect_numbered(watcher.events(), 1);
  Watcher late(client, id, "?from=25");
  EXPECT_TRUE(late.until<JobEnded>());
  EXPECT_EQ(late.events().size(), 0u);
}

TEST_F(StreamTest, AStreamResumesWithoutGapOrRepeat) {
  FakePool pool(client);
  const std::uint32_t id = submit(client);
  const StartRun start = pool.expect<StartRun>();
  pool.send(RunStarted{start.run});
  std::vector<Event> all;
  std::size_t sent = 0;
  for (int round = 0; round < 10; ++round) {
    Watcher watcher(client, id, "?from=" + std::to_string(all.size() + 1));
    pool.send_points(start.run, sent, 700);
    sent += 700;
    ASSERT_TRUE(watcher.until_events(300));
    all.insert(all.end(), watcher.events().begin(), watcher.events().end());
    watcher.close();  // in the middle of things
  }
  pool.end(start.run);
  Watcher watcher(client, id, "?from=" + std::to_string(all.size() + 1));
  ASSERT_TRUE(watcher.until<JobEnded>());
  all.insert(all.end(), watcher.events().begin(), watcher.events().end());
  EXPECT_EQ(all.size(), sent + 4);
  expect_numbered(all, 1);
}

TEST_F(StreamTest, EventsOfALostAttemptStayAndTheSecondGoesOn) {
  const std::uint32_t id = submit(client);
  Watcher watcher(client, id);
  {
    FakePool pool(client, "first");
    const StartRun start = pool.expect<StartRun>();
    pool.send_points(start.run, 0, 100);
    ASSERT_TRUE(watcher.until_events(102));
  }
  FakePool pool(client, "second");
  pool.run(pool.expect<StartRun>(), 150);
  ASSERT_TRUE(watcher.until<JobEnded>());
  expect_numbered(watcher.events(), 1);
  std::size_t points = 0;
  for (const Event& event : watcher.events()) points += std::holds_alternative<Point>(event.what);
  EXPECT_EQ(points, 150u);
}

TEST_F(StreamTest, AQueuedJobThatIsCancelledEndsItsStream) {
  const std::uint32_t id = submit(client);
  Watcher watcher(client, id);
  ASSERT_TRUE(watcher.until<LiveFromHere>());
  client.send("POST", "/v1/jobs/" + std::to_string(id) + "/cancel");
  EXPECT_EQ(watcher.until<JobEnded>()->job.state, JobState::cancelled);
}

TEST_F(StreamTest, TheEndOfTheDaemonIsAnnounced) {
  const std::uint32_t id = submit(client);
  Watcher watcher(client, id);
  ASSERT_TRUE(watcher.until<LiveFromHere>());
  std::thread ending([&] { daemon.stop(); });
  EXPECT_EQ(watcher.until<Closing>()->reason, "the test ends");
  EXPECT_FALSE(watcher.receive());
  ending.join();
}

TEST_F(StreamTest, WhatAClientSaysIsIgnoredUnlessItIsTooMuch) {
  const std::uint32_t id = submit(client);
  WebSocketClient talker(client.port(), "/v1/jobs/" + std::to_string(id) + "/stream",
                         client.token());
  EXPECT_TRUE(talker.receive());
  talker.send("hello", 1);
  talker.send(std::string(100'000, 'x'));
  while (talker.receive()) {
  }
  EXPECT_EQ(show(client, id).state, JobState::queued);
}

TEST(StreamLimits, SilenceIsFilledWithHeartbeats) {
  TemporaryFolder folder;
  NetLimits limits;
  limits.stream_heartbeat = std::chrono::milliseconds(20);
  RunningDaemon daemon({.data_dir = folder.path() / "data", .net = limits});
  const std::uint32_t id = submit(daemon.client());
  Watcher watcher(daemon.client(), id);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(watcher.until<Heartbeat>());
}

/// One client reads nothing while a job of 400,000 points goes by, and for a while after: its frame
/// is under way for longer than the daemon allows. Who reads is far from that limit.
struct SlowClient : testing::Test {
  static constexpr std::size_t points_total = 400'000;
  static constexpr int small_window = 4096;
  static constexpr std::chrono::milliseconds patience{1000};

  void run_job(FakePool& pool, const Client& client, std::uint32_t id) {
    const StartRun start = pool.expect<StartRun>();
    pool.send(RunStarted{start.run});
    for (std::size_t at = 0; at < points_total; at += 10'000) {
      pool.send_points(start.run, at, 10'000);
    }
    pool.end(start.run);
    Watcher good(client, id, "?from=1");
    EXPECT_TRUE(good.until<JobEnded>()) << "the others get everything";
    EXPECT_EQ(good.events().size(), points_total + 4);
    expect_numbered(good.events(), 1);
    std::this_thread::sleep_for(patience + patience / 2);  // this is what the slow client does
  }
};

TEST_F(SlowClient, IsToldSoWhenItReadsAtLastAndCanResume) {
  TemporaryFolder folder;
  NetLimits limits;
  limits.slow_frame = patience;
  RunningDaemon daemon({.data_dir = folder.path() / "data", .net = limits});
  const Client client = daemon.client();
  FakePool pool(client);
  const std::uint32_t id = submit(client);
  Watcher slow(client, id, "", small_window);
  run_job(pool, client, id);
  const auto closing = slow.until<Closing>();
  ASSERT_TRUE(closing);
  EXPECT_THAT(closing->reason, HasSubstr("does not keep up"));
  EXPECT_FALSE(slow.receive());
  EXPECT_LT(slow.events().size(), points_total);
  expect_numbered(slow.events(), 1);
  const std::string next = std::to_string(slow.events().size() + 1);
  EXPECT_THAT(closing->reason, HasSubstr("from=" + next));
  EXPECT_EQ(events(client, id, "?from=" + next + "&limit=1").events.size(), 1u);
}

TEST_F(SlowClient, IsCutOffWhenItNeverReads) {
  TemporaryFolder folder;
  NetLimits limits;
  limits.slow_frame = patience;
  limits.stuck_frame = patience;
  RunningDaemon daemon({.data_dir = folder.path() / "data", .net = limits});
  const Client client = daemon.client();
  FakePool pool(client);
  const std::uint32_t id = submit(client);
  Watcher stuck(client, id, "", small_window);
  run_job(pool, client, id);
  EXPECT_FALSE(stuck.until<JobEnded>());
  EXPECT_LT(stuck.events().size(), points_total);
}

}  // namespace
}  // namespace pipewright::test
