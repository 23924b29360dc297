// What may come with a job and must not hurt anybody else: numbers that no message holds, and files
// that are pipes, have no end, or go away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "core/schedule/csv.hpp"
#include "core/train/job.hpp"
#include "tests/service/support.hpp"

namespace pipewright::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct Intake : testing::Test {
  TemporaryFolder folder;
  RunningDaemon daemon{{.data_dir = folder.path() / "data"}};
  Client client = daemon.client();

  Reply submit_yaml(const std::string& objective, const std::string& schedule) const {
    const std::string job = "objective: {quadratic: {generate: " + objective +
                            ", batch_size: 4}}\nschedule: " + schedule +
                            "\noptimizer: {sgd: {learning_rate: 0.02}}\n";
    return client.send("POST", "/v1/jobs", job, {{"Content-Type", "application/yaml"}});
  }
  Reply submit_with_file(const fs::path& file) const {
    return submit_yaml("{kind: random, examples: 20, parameters: 4}",
                       "{file: {path: " + file.string() + "}}");
  }
  std::size_t jobs() const {
    return decode<JobList>(client.get("/v1/jobs").body, WireFormat::json).jobs.size();
  }
  fs::path schedule_file() const {
    const JobConfig config = JobConfig::from(check_job(small_job(2)));
    const auto source = config.make_schedule(0);
    Schedule schedule;
    schedule.header = source->header();
    schedule.rows.resize(static_cast<std::size_t>(schedule.header.rows()));
    for (std::size_t r = 0; r < schedule.rows.size(); ++r) {
      while (const auto action = source->next(Row(static_cast<std::int32_t>(r)))) {
        schedule.rows[r].push_back(*action);
      }
    }
    std::ofstream out(folder.path() / "schedule.csv");
    write_csv(out, schedule);
    return folder.path() / "schedule.csv";
  }
};

TEST_F(Intake, AJobThatCannotBeStoredIsRefusedAndNoOther) {
  const std::string huge = "{kind: random, examples: 20, parameters: 4, seed: 1234567890123456789}";
  const std::string schedule = "{pipedream: {stages: 2, microbatches: 4}}";
  std::vector<std::thread> clients;
  std::atomic<int> taken{0}, refused{0};
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&, i] {
      const Reply reply =
          submit_yaml(i % 2 == 0 ? huge : "{kind: random, examples: 20, parameters: 4}", schedule);
      if (i % 2 != 0) return void(taken += reply.status == 201);
      EXPECT_THAT(reply.body, HasSubstr("2^53"));
      refused += reply.status == 400;
    });
  }
  for (std::thread& thread : clients) thread.join();
  EXPECT_EQ(taken, 4);
  EXPECT_EQ(refused, 4);
  EXPECT_EQ(jobs(), 4u);
}

TEST_F(Intake, AScheduleFileIsNotNeededOnceItsJobIsTaken) {
  const fs::path file = schedule_file();
  const Reply reply = submit_with_file(file);
  ASSERT_EQ(reply.status, 201) << reply.body;
  fs::remove(file);
  FakePool pool(client);
  const StartRun start = pool.expect<StartRun>();
  EXPECT_EQ(find_path(start.spec, "schedule.file.path")->as_text(), file.string());
  pool.run(start, 5);
  while (!std::holds_alternative<RunEndStored>(pool.receive().value())) {
  }
  EXPECT_EQ(client.get("/v1/jobs/1/runs").status, 200);
  EXPECT_EQ(client.get("/v1/jobs/1/runs/0").status, 200);
  EXPECT_EQ(client.get("/v1/jobs/1/files").status, 200);
}

TEST_F(Intake, APipeIsNotOpened) {
  const fs::path pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const Reply reply = submit_with_file(pipe);
  EXPECT_EQ(reply.status, 400);
  EXPECT_THAT(reply.body, HasSubstr("pipe: cannot be read: it is a pipe"));
}

TEST_F(Intake, AFileWithoutLinesIsReadForALittleOnly) {
  const fs::path file = folder.path() / "sparse.csv";
  std::ofstream(file).put('#');
  fs::resize_file(file, std::uintmax_t{1} << 40);
  const Reply reply = submit_with_file(file);
  EXPECT_EQ(reply.status, 400);
  EXPECT_THAT(reply.body, HasSubstr("sparse.csv:1: the line is longer than"));
}

}  // namespace
}  // namespace pipewright::test
