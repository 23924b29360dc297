// What the daemon tells Prometheus and load balancers of itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "tests/service/support.hpp"

namespace pipewright::test {
namespace {

using testing::HasSubstr;

struct MetricsTest : testing::Test {
  TemporaryFolder folder;
  RunningDaemon daemon{{.data_dir = folder.path() / "data"}};
  Client client = daemon.client();

  std::string metrics() const {
    const Reply reply = client.get("/metrics");
    EXPECT_EQ(reply.status, 200);
    return reply.body;
  }
};

TEST_F(MetricsTest, CountsWhatHasHappened) {
  const std::uint32_t id = submit(client);
  submit(client);
  EXPECT_THAT(metrics(), HasSubstr("pipewright_jobs{state=\"queued\"} 2\n"));
  FakePool pool(client, "fake", 3);
  const auto start = pool.expect<StartRun>();
  pool.run(start, 40);
  wait_for(client, id, JobState::succeeded);
  const std::string text = metrics();
  for (const char* line :
       {"pipewright_jobs{state=\"succeeded\"} 1\n", "pipewright_jobs{state=\"failed\"} 0\n",
        "pipewright_runs_ended_total{outcome=\"succeeded\"} 1\n", "pipewright_pools 1\n",
        "pipewright_points_total 40\n", "pipewright_ranks{state=\"busy\"} 1\n",
        "pipewright_ranks{state=\"idle\"} 2\n", "pipewright_run_wait_seconds_count 2\n",
        "pipewright_streams 0\n", "pipewright_tokens_refused_total 0\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST_F(MetricsTest, NeedTheTokenAndCountThoseWithout) {
  const Reply refused = client.get("/metrics", {{"Authorization", "Bearer wrong"}});
  EXPECT_EQ(refused.status, 401);
  EXPECT_THAT(metrics(), HasSubstr("pipewright_tokens_refused_total 1\n"));
}

TEST_F(MetricsTest, CountStreams) {
  const std::uint32_t id = submit(client);
  Watcher watcher(client, id);
  ASSERT_TRUE(watcher.until<LiveFromHere>());
  EXPECT_THAT(metrics(), HasSubstr("pipewright_streams 1\n"));
}

TEST_F(MetricsTest, PassPromtool) {
  if (std::system("promtool --version >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "promtool is not installed (Debian: prometheus)";
  }
  submit(client);
  const std::string text = metrics();
  const std::string file = (folder.path() / "metrics").string();
  std::ofstream(file) << text;
  const std::string command = "promtool check metrics <" + file + " >" + file + ".out 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << read_file(file + ".out") << text;
}

TEST_F(MetricsTest, ADaemonThatTakesJobsIsReady) {
  const Reply ready = client.get("/readyz", {{"Authorization", ""}});
  EXPECT_EQ(ready.status, 200);
  EXPECT_THAT(ready.body, HasSubstr("ready"));
}

}  // namespace
}  // namespace pipewright::test
