// What is kept and for how long: idempotency keys, deletion, retention.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/service/support.hpp"

namespace pipewright::test {
namespace {

using testing::HasSubstr;

namespace fs = std::filesystem;

struct KeepTest : testing::Test {
  TemporaryFolder folder;
  DaemonOptions options{.data_dir = folder.path() / "data"};
  std::unique_ptr<RunningDaemon> daemon = std::make_unique<RunningDaemon>(options);

  void restart() {
    daemon.reset();
    daemon = std::make_unique<RunningDaemon>(options);
  }
  Client client() const { return daemon->client(); }
  Reply submit_under(const std::string& key, const Value& job) const {
    return client().send("POST", "/v1/jobs", encode(JobSpecBody{job}, WireFormat::json),
                         {{"Content-Type", "application/json"}, {"Idempotency-Key", key}});
  }
  Reply remove(std::uint32_t id) const {
    return client().send("DELETE", "/v1/jobs/" + std::to_string(id));
  }
  /// Past what is left of the run before.
  static StartRun next_start(FakePool& pool) {
    while (const auto frame = pool.receive()) {
      if (const auto* start = std::get_if<StartRun>(&*frame)) return *start;
    }
    throw std::runtime_error("the pool was told to run nothing");
  }
  /// Runs a job to its end, with a file of so many bytes.
  std::uint32_t ended_job(FakePool& pool, std::size_t file_bytes = 10) const {
    const std::uint32_t id = submit(client());
    const StartRun start = next_start(pool);
    pool.send(RunStarted{start.run});
    pool.send_points(start.run, 0, 5);
    pool.send_file(start.run, "objective.csv", std::string(file_bytes, 'x'));
    pool.end(start.run);
    wait_for(client(), id, JobState::succeeded);
    return id;
  }
  /// The time limit of the test ends this.
  void until_gone(std::uint32_t id) const {
    while (client().get("/v1/jobs/" + std::to_string(id)).status != 404) std::this_thread::yield();
  }
  fs::path folder_of(std::uint32_t id) const {
    return options.data_dir / "jobs" / std::to_string(id);
  }
};

std::uint32_t id_of(const Reply& reply) {
  return decode<SubmitReply>(reply.body, WireFormat::json).id;
}

TEST_F(KeepTest, OneKeyIsOneJobAlsoOverARestart) {
  const Reply first = submit_under("k-1", small_job());
  EXPECT_EQ(first.status, 201);
  const Reply again = submit_under("k-1", small_job());
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(id_of(again), id_of(first));
  restart();
  const Reply later = submit_under("k-1", small_job());
  EXPECT_EQ(later.status, 200);
  EXPECT_EQ(id_of(later), id_of(first));
  EXPECT_EQ(id_of(submit_under("k-2", small_job())), id_of(first) + 1);
  EXPECT_EQ(submit(client()), id_of(first) + 2) << "without a key every job is new";
}

TEST_F(KeepTest, AKeyOfAnotherJobIsRefused) {
  const std::uint32_t id = id_of(submit_under("k", small_job(1, "one")));
  const Reply refused = submit_under("k", small_job(1, "two"));
  EXPECT_EQ(refused.status, 422);
  EXPECT_THAT(refused.body, HasSubstr("job " + std::to_string(id)));
  EXPECT_EQ(submit_under("two words", small_job()).status, 400);
  EXPECT_EQ(submit_under(std::string(201, 'k'), small_job()).status, 400);
}

TEST_F(KeepTest, OnlyAnEndedJobCanBeDeleted) {
  const std::uint32_t waits = submit(client());
  const Reply refused = remove(waits);
  EXPECT_EQ(refused.status, 409);
  EXPECT_THAT(refused.body, HasSubstr("cancel it first"));
  EXPECT_EQ(remove(77).status, 404);
  client().send("POST", "/v1/jobs/" + std::to_string(waits) + "/cancel");
  EXPECT_EQ(remove(waits).status, 200);
  EXPECT_EQ(remove(waits).status, 404);
}

TEST_F(KeepTest, ADeletedJobIsGoneWithItsFilesAndItsIdIsNotUsedAgain) {
  FakePool pool(client());
  const std::uint32_t kept = ended_job(pool);
  const std::uint32_t id = ended_job(pool);
  ASSERT_TRUE(fs::exists(folder_of(id)));
  const Reply reply = remove(id);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(decode<Job>(reply.body, WireFormat::json).id, id);
  EXPECT_FALSE(fs::exists(folder_of(id)));
  EXPECT_EQ(client().get("/v1/jobs/" + std::to_string(id)).status, 404);
  EXPECT_EQ(client().get("/v1/jobs/" + std::to_string(id) + "/events").status, 404);
  EXPECT_EQ(points_of(events(client(), kept)).size(), 5U);
  pool.close();
  restart();
  EXPECT_EQ(submit(client()), id + 1);
}

TEST_F(KeepTest, FilesThatACrashLeftBehindAreDeletedAtTheNextStart) {
  FakePool pool(client());
  const std::uint32_t id = ended_job(pool);
  pool.close();
  fs::create_directories(folder_of(id + 7) / "0");
  fs::create_directories(options.data_dir / "jobs" / "notes");
  restart();
  EXPECT_TRUE(fs::exists(folder_of(id)));
  EXPECT_FALSE(fs::exists(folder_of(id + 7)));
  EXPECT_TRUE(fs::exists(options.data_dir / "jobs" / "notes")) << "not ours";
}

TEST_F(KeepTest, JobsThatEndedLongAgoAreDeleted) {
  FakePool pool(client());
  const std::uint32_t id = ended_job(pool);
  pool.close();
  options.service.retention.age_max = std::chrono::hours(1);
  options.service.retention.check_interval = std::chrono::milliseconds(1);
  restart();
  const std::uint32_t waits = submit(client());
  show(client(), waits);
  EXPECT_EQ(show(client(), id).state, JobState::succeeded);
  options.service.retention.age_max = std::chrono::seconds(0);
  restart();
  until_gone(id);
  EXPECT_EQ(show(client(), waits).state, JobState::queued) << "it has not ended";
}

TEST_F(KeepTest, TheJobsThatEndedFirstGoWhenTheFolderIsTooLarge) {
  FakePool pool(client());
  constexpr std::size_t file_bytes = 400'000;
  const std::uint32_t first = ended_job(pool, file_bytes);
  const std::uint32_t second = ended_job(pool, file_bytes);
  const std::uint32_t third = ended_job(pool, file_bytes);
  pool.close();
  options.service.retention.bytes_max = 2 * file_bytes + 300'000;
  options.service.retention.check_interval = std::chrono::milliseconds(1);
  restart();
  until_gone(first);
  EXPECT_EQ(show(client(), second).state, JobState::succeeded);
  EXPECT_EQ(show(client(), third).state, JobState::succeeded);
  EXPECT_FALSE(fs::exists(folder_of(first)));
}

TEST_F(KeepTest, AStreamOfAJobThatIsDeletedEnds) {
  const std::uint32_t id = submit(client());
  Watcher watcher(client(), id);
  ASSERT_TRUE(watcher.until<LiveFromHere>());
  client().send("POST", "/v1/jobs/" + std::to_string(id) + "/cancel");
  ASSERT_EQ(remove(id).status, 200);
  while (const auto frame = watcher.receive()) {
    if (const auto* closing = std::get_if<Closing>(&*frame)) {
      EXPECT_THAT(closing->reason, HasSubstr("deleted"));
    }
  }
}

}  // namespace
}  // namespace pipewright::test
