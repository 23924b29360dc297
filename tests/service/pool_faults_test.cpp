// What a pool must not do: it is refused or dropped, and the daemon goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/service/support.hpp"

namespace pipewright::test {
namespace {

using testing::HasSubstr;

struct PoolFaults : testing::Test {
  TemporaryFolder folder;
  RunningDaemon daemon{{.data_dir = folder.path() / "data"}};
  Client client = daemon.client();

  void TearDown() override { EXPECT_EQ(client.get("/healthz").status, 200) << "it goes on"; }

  std::string refusal_of(const PoolHello& hello) {
    WebSocketClient socket(client.port(), "/v1/pools/attach", client.token());
    socket.send(encode_pool_frame(hello));
    const std::string answer = socket.receive().value();
    EXPECT_FALSE(socket.receive()) << "the daemon closes after it";
    return std::get<Refused>(decode_daemon_frame(answer)).reason;
  }
  static PoolHello hello(const std::string& name) {
    PoolHello hello;
    hello.name = name;
    hello.ranks = {{0, "here", 1}};
    return hello;
  }
};

TEST_F(PoolFaults, BadHellosAreRefused) {
  EXPECT_THAT(refusal_of(hello("")), HasSubstr("name"));
  PoolHello no_ranks = hello("a");
  no_ranks.ranks.clear();
  EXPECT_THAT(refusal_of(no_ranks), HasSubstr("ranks"));
  PoolHello disorder = hello("a");
  disorder.ranks = {{1, "here", 1}};
  EXPECT_THAT(refusal_of(disorder), HasSubstr("in order"));
  PoolHello future = hello("a");
  future.protocol = 99;
  EXPECT_THAT(refusal_of(future), HasSubstr("protocol 99"));
  FakePool first(client, "a");
  EXPECT_THAT(refusal_of(hello("a")), HasSubstr("already"));
}

TEST_F(PoolFaults, AFirstFrameThatIsNoHelloIsRefused) {
  WebSocketClient socket(client.port(), "/v1/pools/attach", client.token());
  socket.send(encode_pool_frame(Heartbeat{}));
  EXPECT_TRUE(std::holds_alternative<Refused>(decode_daemon_frame(socket.receive().value())));
  EXPECT_FALSE(socket.receive());
  WebSocketClient garbage(client.port(), "/v1/pools/attach", client.token());
  garbage.send("\xff\xff\xff");
  EXPECT_TRUE(std::holds_alternative<Refused>(decode_daemon_frame(garbage.receive().value())));
}

TEST_F(PoolFaults, APoolWithoutATokenIsRefused) {
  WebSocketClient socket(client.port(), "/v1/pools/attach", "wrong");
  EXPECT_EQ(socket.reply().status, 401);
}

TEST_F(PoolFaults, AMalformedFrameLosesThePool) {
  const std::uint32_t id = submit(client);
  FakePool pool(client);
  pool.expect<StartRun>();
  pool.send_raw("\xff\xff\xff");
  EXPECT_FALSE(pool.receive());
  EXPECT_EQ(wait_for(client, id, JobState::queued).attempt, 1u);
}

TEST_F(PoolFaults, PointsAfterAGapLoseThePool) {
  const std::uint32_t id = submit(client);
  FakePool pool(client);
  const StartRun start = pool.expect<StartRun>();
  pool.send_points(start.run, 5, 1);
  EXPECT_FALSE(pool.receive());
  EXPECT_THAT(wait_for(client, id, JobState::queued).message, HasSubstr("begin at index 5"));
}

TEST_F(PoolFaults, AFileOutsideOfTheJobsFolderLosesThePool) {
  submit(client);
  FakePool pool(client);
  const StartRun start = pool.expect<StartRun>();
  pool.send(RunFileChunk{start.run, "../../token", 0, "mine now", true});
  EXPECT_FALSE(pool.receive());
  EXPECT_EQ(read_file(folder.path() / "data" / "token").substr(0, 64), client.token());
}

TEST_F(PoolFaults, ASecondHelloLosesThePool) {
  FakePool pool(client);
  pool.send(hello("again"));
  EXPECT_FALSE(pool.receive());
}

TEST_F(PoolFaults, FramesOfUnknownRunsAreIgnoredAndTheirEndAcknowledged) {
  FakePool pool(client);
  const RunId unknown{77, 0, 1};
  pool.send(RunStarted{unknown});
  pool.send_points(unknown, 0, 5);
  pool.send(RunProgress{unknown, {1, 2, 3, 4, 5, 6, {}}});
  pool.send(RunLog{unknown, {Severity::error, "x"}});
  pool.send_file(unknown, "a.csv", "text");
  pool.end(unknown);
  EXPECT_EQ(pool.expect<RunEndStored>().run, unknown);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "data" / "jobs" / "77"));
}

TEST_F(PoolFaults, AnotherPoolCannotSpeakForARun) {
  const std::uint32_t id = submit(client);
  FakePool owner(client, "owner");
  const StartRun start = owner.expect<StartRun>();
  FakePool other(client, "other");
  other.send_points(start.run, 0, 5);
  other.end(start.run, RunOutcome::failed, "not mine");
  other.expect<RunEndStored>();
  EXPECT_EQ(show(client, id).state, JobState::starting);
  EXPECT_EQ(points_of(events(client, id)).size(), 0u);
}

TEST_F(PoolFaults, AFileThatCannotBeStoredFailsTheJob) {
  std::ofstream(folder.path() / "data" / "jobs") << "a file where a folder should be";
  const std::uint32_t id = submit(client);
  FakePool pool(client);
  pool.run(pool.expect<StartRun>(), 1);
  const Job job = wait_for(client, id, JobState::failed);
  EXPECT_THAT(job.message, HasSubstr("could not be stored"));
}

TEST_F(PoolFaults, ALongLogLineIsCut) {
  const std::uint32_t id = submit(client);
  FakePool pool(client);
  const StartRun start = pool.expect<StartRun>();
  std::string text = "a";
  for (int i = 0; i < 20'000; ++i) text += "\xc3\xa9";
  pool.send(RunLog{start.run, {Severity::info, text}});
  pool.end(start.run);
  pool.expect<RunEndStored>();
  const EventList logs = events(client, id, "?kind=log");
  const std::string stored = std::get<LogLine>(logs.events.at(0).what).text;
  EXPECT_LT(stored.size(), 17'000u);
  EXPECT_THAT(stored, testing::EndsWith("\xc3\xa9 [cut]"));
}

TEST(PoolHeartbeat, ASilentPoolIsDroppedAndItsRunsAreQueuedAgain) {
  TemporaryFolder folder;
  ServiceLimits limits;
  limits.queue.heartbeat_interval = std::chrono::milliseconds(200);
  RunningDaemon daemon({.data_dir = folder.path() / "data", .service = limits});
  const Client client = daemon.client();
  const std::uint32_t id = submit(client);
  FakePool pool(client);
  pool.expect<StartRun>();
  // It says nothing from here on; its socket stays open.
  EXPECT_THAT(wait_for(client, id, JobState::queued).message, HasSubstr("silent"));
}

TEST(PoolHeartbeat, APoolThatSaysNoHelloIsClosed) {
  TemporaryFolder folder;
  NetLimits limits;
  limits.hello_max = std::chrono::milliseconds(50);
  RunningDaemon daemon({.data_dir = folder.path() / "data", .net = limits});
  WebSocketClient socket(daemon.port(), "/v1/pools/attach", daemon.token());
  EXPECT_FALSE(socket.receive());
}

}  // namespace
}  // namespace pipewright::test
