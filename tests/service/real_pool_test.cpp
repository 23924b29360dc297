// A real pool against a real daemon in one process: the ranks are threads, everything else is what
// pipewright-worker does. Small enough for ThreadSanitizer, which cannot follow MPI.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <mutex>

#include "core/train/result_files.hpp"
#include "tests/service/daemon_process.hpp"
#include "tests/support/runs.hpp"
#include "tests/support/schedule_cases.hpp"
#include "worker/runtime/pool.hpp"
#include "worker/transport/in_process.hpp"

namespace pipewright::test {
namespace {

namespace fs = std::filesystem;

/// Leaves the daemon in order at its end.
class PoolOfThreads {
 public:
  /// `address` is asked by the coordinator whenever it attaches.
  PoolOfThreads(std::function<DaemonAddress()> address, std::uint32_t ranks, fs::path spool)
      : address_(std::move(address)), spool_(std::move(spool)), world_(static_cast<int>(ranks)) {
    threads_.emplace_back([this] { coordinate(); });
    for (std::uint32_t r = 1; r < ranks; ++r) {
      threads_.emplace_back([this, r] {
        serve_rank(*world_.rank(static_cast<int>(r)), {r, "thread", getpid()}, stop_);
      });
    }
  }
  ~PoolOfThreads() { leave(); }

  /// Why it ended.
  const std::string& leave() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    return end_;
  }

 private:
  std::unique_ptr<DaemonLink> connect(std::vector<RankInfo> ranks, std::vector<RunId> runs) {
    PoolHello hello;
    hello.name = "threads";
    hello.instance = "one";
    hello.ranks = std::move(ranks);
    hello.runs = std::move(runs);
    return std::make_unique<DaemonLink>(address_(), hello, std::chrono::seconds(30));
  }

  void coordinate() {
    const auto transport = world_.rank(0);
    const auto ranks = gather_ranks(*transport, {0, "thread", getpid()}, stop_);
    try {
      auto link = connect(ranks, {});
      link->await_welcome();
      const PoolOptions options{
          .connect = [&](std::vector<RunId> runs) { return connect(ranks, std::move(runs)); },
          .say = [](const std::string&) {},
          .spool = spool_.string(),
          .ranks = ranks,
          .hurry = hurry_};
      end_ = serve_pool(*transport, std::move(link), options, stop_).reason;
    } catch (const std::exception& error) {
      end_ = error.what();
    }
    shut_down_ranks(*transport);
  }

  std::function<DaemonAddress()> address_;
  fs::path spool_;
  InProcessWorld world_;
  std::atomic<bool> stop_{false}, hurry_{false};
  std::string end_;
  std::vector<std::thread> threads_;
};

DaemonAddress address_of(const Client& client) {
  const bool tls = std::getenv("PIPEWRIGHT_TEST_TLS") != nullptr;
  const std::string url =
      (tls ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(client.port());
  return {net::parse_url(url), client.token(), tls ? test_certificates().ca.string() : ""};
}

/// The files of run 0 are those of the same job in one process, byte for byte.
void expect_bytes_of_one_process(const Client& client, std::uint32_t id, const Value& job) {
  const TemporaryFolder alone;
  ResultFiles files(alone.path().string());
  const RunResult result = run_job(job, files);
  files.finish(result.summary, result.weights);
  for (const char* name :
       {"weights.npy", "objective.csv", "last_stage_loss.csv", "schedule.csv", "timeline.csv"}) {
    const Reply reply = client.get("/v1/jobs/" + std::to_string(id) + "/files/" + name);
    ASSERT_EQ(reply.status, 200) << name << ": " << reply.body;
    EXPECT_TRUE(reply.body == read_file(alone.path() / name))
        << name << " of " << to_json(job, -1) << " differs";
  }
}

/// Ends on its own only after an hour.
Value endless_job() {
  Value job = small_job(2, "endless");
  job.set("clock", "real");
  set_path(job, "cost.forward", "1s");
  set_path(job, "cost.backward", "1s");
  set_path(job, "schedule.pipedream.microbatches", 3600);
  return job;
}

struct RealPool : testing::Test {
  TemporaryFolder folder;
  RunningDaemon daemon{{.data_dir = folder.path() / "data"}};
  Client client = daemon.client();
  PoolOfThreads pool{[this] { return address_of(client); }, 4, folder.path() / "spool"};
};

TEST_F(RealPool, JobsOfEveryScheduleSideBySideGiveTheBytesOfOneProcess) {
  std::vector<std::pair<std::uint32_t, Value>> jobs;
  for (const ScheduleCase& one : all_schedule_cases()) {
    Value job = job_with(one);
    job.set("ranks", static_cast<std::int64_t>(1 + jobs.size() % 4));
    jobs.emplace_back(submit(client, job), job);
  }
  for (const auto& [id, job] : jobs) {
    wait_for(client, id, JobState::succeeded);
    expect_bytes_of_one_process(client, id, job);
  }
}

TEST_F(RealPool, AStreamHasEveryPointOfARepeatedRunAndItsEnd) {
  Value job = small_job(2);
  job.set("repeats", 12);
  const std::uint32_t id = submit(client, job);
  Watcher watcher(client, id);
  const auto end = watcher.until<JobEnded>();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->job.state, JobState::succeeded);
  expect_numbered(watcher.events(), 1);
  std::map<std::uint32_t, std::size_t> losses;
  for (const Event& event : watcher.events()) {
    const auto* point = std::get_if<Point>(&event.what);
    if (point != nullptr && point->series == Series::last_stage_loss) ++losses[event.run];
  }
  EXPECT_EQ(losses.size(), 12u);
  for (const auto& [run, count] : losses) EXPECT_EQ(count, 8u) << "run " << run;
}

TEST_F(RealPool, ARunIsCancelledAndItsRanksTakeTheNext) {
  const std::uint32_t endless = submit(client, endless_job());
  wait_for(client, endless, JobState::running);
  EXPECT_EQ(client.send("POST", "/v1/jobs/" + std::to_string(endless) + "/cancel").status, 200);
  wait_for(client, endless, JobState::cancelled);
  const Value job = small_job(4);
  const std::uint32_t next = submit(client, job);
  wait_for(client, next, JobState::succeeded);
  expect_bytes_of_one_process(client, next, job);
}

TEST_F(RealPool, AScheduleFileThatIsGoneFailsItsRunAndNoOther) {
  const std::uint32_t innocent = submit(client, endless_job());
  const std::uint32_t other = submit(client, endless_job());
  wait_for(client, innocent, JobState::running);
  wait_for(client, other, JobState::running);
  const fs::path file = folder.path() / "schedule.csv";
  std::ofstream(file) << "# pipewright schedule version=1 name=made stages=2 microbatches=1"
                         " updates=1 replicas=1 local_steps=0 delay_max=0 in_flight_max=1 seed=0"
                         " placement=colocated blocks=all\n";
  Value job = small_job(2);
  job.set("schedule", one_of("file", Value(Value::Map{{"path", file.string()}})));
  const std::uint32_t id = submit(client, job);  // which waits for ranks
  fs::remove(file);
  EXPECT_EQ(client.send("POST", "/v1/jobs/" + std::to_string(other) + "/cancel").status, 200);
  const Job failed = wait_for(client, id, JobState::failed);
  EXPECT_THAT(failed.message, testing::HasSubstr("schedule.csv: cannot be opened"));
  EXPECT_EQ(failed.attempt, 1u);
  EXPECT_EQ(show(client, innocent).state, JobState::running);
  EXPECT_EQ(show(client, innocent).attempt, 1u);
}

TEST_F(RealPool, APoolThatLeavesGivesItsRunBackToTheNextOne) {
  Value job = endless_job();
  const std::uint32_t id = submit(client, job);
  wait_for(client, id, JobState::running);
  pool.leave();
  wait_for(client, id, JobState::queued);
  PoolOfThreads next([this] { return address_of(client); }, 2, folder.path() / "spool2");
  wait_for(client, id, JobState::running);
}

/// The daemon is a process that is killed; the pool stays.
struct RealPoolOfAProcess : DaemonProcess {};

TEST_F(RealPoolOfAProcess, ARunThatAPoolKeepsWhileTheDaemonIsKilledEndsWithAllItsPoints) {
  std::unique_ptr<Process> process = launch();
  std::mutex mutex;
  Client client = client_of(*process);
  PoolOfThreads pool(
      [&] {
        const std::lock_guard lock(mutex);
        return address_of(client);
      },
      2, folder.path() / "spool");
  Value job = small_job(2);
  set_path(job, "schedule.pipedream.microbatches", 20'000);
  const std::uint32_t id = submit(client, job);
  Watcher watcher(client, id);
  watcher.until_events(200);
  process->kill(SIGKILL);
  process = launch();
  {
    const Client back = client_of(*process);
    const std::lock_guard lock(mutex);
    client = back;
  }
  EXPECT_EQ(wait_for(client, id, JobState::succeeded).attempt, 1u);
  expect_bytes_of_one_process(client, id, job);
  Watcher again(client, id);
  ASSERT_TRUE(again.until<JobEnded>());
  expect_numbered(again.events(), 1);
  std::int64_t losses = 0;
  for (const Event& event : again.events()) {
    const auto* point = std::get_if<Point>(&event.what);
    if (point == nullptr || point->series != Series::last_stage_loss) continue;
    EXPECT_EQ(point->microbatch, losses++);
  }
  EXPECT_EQ(losses, 20'000);
}

}  // namespace
}  // namespace pipewright::test
