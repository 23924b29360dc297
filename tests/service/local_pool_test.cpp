// The pool that the daemon starts: real mpirun, with a script in the place of the worker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <thread>

#include "daemon/pools/local_pool.hpp"
#include "daemon/pools/process_tree.hpp"
#include "tests/service/support.hpp"

namespace pipewright::test {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

void wait_until(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("it never came");
    std::this_thread::sleep_for(milliseconds(10));
  }
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) ++found;
  return found;
}

/// Gone, or a zombie that nobody has reaped yet.
bool dead(const std::string& pid) {
  const std::string stat = read_file("/proc/" + pid + "/stat");
  return stat.empty() || stat.find(") Z ") != std::string::npos;
}

struct LocalPoolTest : testing::Test {
  TemporaryFolder folder;
  LocalPoolOptions options;
  const LocalPool::Time start = LocalPool::Time() + std::chrono::hours(1);

  void worker_is(const std::string& script) {
    options.worker = folder.path() / "worker";
    options.ranks = 2;
    options.daemon_url = "http://127.0.0.1:1";
    options.token_file = folder.path() / "token";
    options.log_file = folder.path() / "log";
    options.data_dir = folder.path();
    std::ofstream(options.worker) << "#!/bin/sh\n" << script;
    std::filesystem::permissions(options.worker, std::filesystem::perms::owner_all);
  }
  std::string log() const { return read_file(options.log_file); }
};

TEST_F(LocalPoolTest, StartsItsRanksAndEndsThem) {
  worker_is("echo \"pid $$ got $*\"\nexec sleep 1000\n");
  LocalPool pool(options, start);
  pool.tick(start);
  EXPECT_TRUE(pool.running());
  wait_until([&] { return count(log(), " got ") == 2; });
  EXPECT_THAT(log(), HasSubstr("--daemon http://127.0.0.1:1 --daemon-file " +
                               (folder.path() / "daemon.json").string() + " --token-file " +
                               options.token_file.string() + " --name local"));
  const std::string text = log();
  const std::size_t at = text.find("pid ") + 4;
  const std::string rank = text.substr(at, text.find(' ', at) - at);
  EXPECT_FALSE(dead(rank));
  pool.terminate();
  wait_until([&] {
    pool.tick(start);
    return !pool.running();
  });
  wait_until([&] { return dead(rank); });
  pool.tick(start + std::chrono::hours(1));
  EXPECT_FALSE(pool.running()) << "it is started no more";
}

TEST_F(LocalPoolTest, IsStartedAgainLaterAndLater) {
  worker_is("echo started\nexit 3\n");
  options.ranks = 1;
  LocalPool pool(options, start);
  LocalPool::Time now = start;
  std::size_t starts = 0;
  for (const int pause_ms : {0, 500, 1000, 2000}) {
    if (pause_ms > 0) {
      pool.tick(now + milliseconds(pause_ms - 1));
      EXPECT_FALSE(pool.running()) << pause_ms;
    }
    now += milliseconds(pause_ms);
    pool.tick(now);
    EXPECT_TRUE(pool.running()) << pause_ms;
    ++starts;
    wait_until([&] { return count(log(), "started") == starts; });
    wait_until([&] {
      pool.tick(now);
      return !pool.running();
    });
  }
}

/// A pool of a daemon that is killed, whose ranks are there.
struct Orphan : LocalPoolTest {
  std::vector<std::string> ranks;

  void SetUp() override {
    worker_is("echo \"pid $$ .\"\nexec sleep 1000\n");
    const pid_t daemon = ::fork();
    if (daemon == 0) {
      LocalPool pool(options, start);
      pool.tick(start);
      while (true) ::pause();
    }
    wait_until([&] { return count(log(), " .\n") == 2; });
    ::kill(daemon, SIGKILL);
    ::waitpid(daemon, nullptr, 0);
    const std::string text = log();
    for (std::size_t at = 0; (at = text.find("pid ", at)) != std::string::npos;) {
      at += 4;
      ranks.push_back(text.substr(at, text.find(' ', at) - at));
    }
  }
};

TEST_F(Orphan, IsAdoptedByTheNextDaemonAndEndsWithIt) {
  {
    LocalPool pool(options, start);
    EXPECT_TRUE(pool.running());
    pool.tick(start);
    pool.tick(start + std::chrono::hours(1));
    EXPECT_EQ(count(log(), " .\n"), 2U) << "no other is started";
    for (const std::string& rank : ranks) EXPECT_FALSE(dead(rank));
    EXPECT_FALSE(pool.take_end());
  }
  for (const std::string& rank : ranks) wait_until([&] { return dead(rank); });
}

TEST_F(Orphan, ThatDiesIsNoticedAndStartedAgain) {
  LocalPool pool(options, start);
  kill_tree(static_cast<pid_t>(read_local_pool(folder.path())->pid));
  wait_until([&] {
    pool.tick(start);
    return !pool.running();
  });
  EXPECT_TRUE(pool.take_end());
  pool.tick(start + std::chrono::hours(1));
  EXPECT_TRUE(pool.running());
  wait_until([&] { return count(log(), " .\n") == 4; });
}

TEST_F(Orphan, OfAnotherSizeIsReplaced) {
  options.ranks = 1;
  LocalPool pool(options, start);
  EXPECT_FALSE(pool.running());
  for (const std::string& rank : ranks) wait_until([&] { return dead(rank); });
}

}  // namespace
}  // namespace pipewright::test
