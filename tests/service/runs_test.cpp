// Jobs of many runs: what pools are told of them and what clients see.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/service/support.hpp"

namespace pipewright::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A job of as many runs as there are learning rates.
Value sweep_of(std::vector<double> rates) {
  Value job = small_job(4, "sweep");
  Value::List values(rates.begin(), rates.end());
  Value sweep = Value::map();
  sweep.set("optimizer.sgd.learning_rate", values);
  job.set("sweep", sweep);
  return job;
}

struct RunsTest : testing::Test {
  TemporaryFolder folder;
  std::unique_ptr<RunningDaemon> daemon = start();
  Client client = daemon->client();

  std::unique_ptr<RunningDaemon> start() {
    return std::make_unique<RunningDaemon>(DaemonOptions{.data_dir = folder.path() / "data"});
  }
  void restart() {
    daemon.reset();
    daemon = start();
    client = daemon->client();
  }
  RunList runs(std::uint32_t id, const std::string& parameters = "") {
    const Reply reply = client.get("/v1/jobs/" + std::to_string(id) + "/runs" + parameters);
    if (reply.status != 200) throw std::runtime_error(reply.body);
    return decode<RunList>(reply.body, WireFormat::json);
  }
  /// How often each run has come to an end, as events say.
  std::vector<int> ends(std::uint32_t id, std::size_t count) {
    std::vector<int> ends(count);
    for (const Event& event : events(client, id, "?kind=run_state&limit=10000").events) {
      if (is_final(std::get<RunStateChange>(event.what).state)) ++ends.at(event.run);
    }
    return ends;
  }
  std::vector<JobState> states(std::uint32_t id) {
    std::vector<JobState> states;
    for (const Event& event : events(client, id, "?kind=state").events) {
      states.push_back(std::get<StateChange>(event.what).state);
    }
    return states;
  }
};

double rate_of(const Value& spec) {
  return find_path(spec, "optimizer.sgd.learning_rate")->as_real();
}

TEST_F(RunsTest, EachRunGetsItsOwnJobAndKeepsItsOwnResults) {
  FakePool pool(client, "fake", 2);
  const std::uint32_t id = submit(client, sweep_of({0.1, 0.2, 0.4}));
  const auto first = pool.expect<StartRun>();
  const auto second = pool.expect<StartRun>();
  EXPECT_EQ(first.run, (RunId{id, 0, 1}));
  EXPECT_EQ(second.run, (RunId{id, 1, 1}));
  EXPECT_THAT(first.ranks, ElementsAre(0)) << "one rank each, not one per stage";
  EXPECT_THAT(second.ranks, ElementsAre(1));
  EXPECT_EQ(rate_of(first.spec), 0.1);
  EXPECT_EQ(rate_of(second.spec), 0.2);
  pool.send(RunStarted{second.run});
  pool.send_points(second.run, 0, 10);
  pool.send_points(first.run, 0, 4);
  pool.send_file(second.run, "objective.csv", "of the second\n");
  pool.end(second.run, RunOutcome::succeeded, "diverged at tick 9");
  pool.send_file(first.run, "objective.csv", "of the first\n");
  pool.end(first.run);
  while (const auto frame = pool.receive()) {
    const auto* start = std::get_if<StartRun>(&*frame);
    if (start == nullptr) continue;
    EXPECT_EQ(rate_of(start->spec), 0.4);
    pool.run(*start, 0);
    break;
  }
  const Job job = wait_for(client, id, JobState::succeeded);
  EXPECT_EQ(job.progress.runs, (RunCounts{3, 0, 3, 0, 0}));
  EXPECT_THAT(states(id), ElementsAre(JobState::queued, JobState::starting, JobState::running,
                                      JobState::succeeded));
  EXPECT_THAT(ends(id, 3), ElementsAre(1, 1, 1));
  EXPECT_EQ(points_of(events(client, id, "?kind=point&run=1")).size(), 10u);
  EXPECT_EQ(points_of(events(client, id, "?kind=point&run=0")).size(), 4u);
  EXPECT_EQ(points_of(events(client, id, "?kind=point&run=2")).size(), 0u);

  const RunList list = runs(id);
  ASSERT_EQ(list.runs.size(), 3u);
  EXPECT_EQ(list.next_from, 0u);
  EXPECT_EQ(list.runs[1].message, "diverged at tick 9");
  EXPECT_EQ(list.runs[1].objective_last, some_points(8, 1)[0].value);
  EXPECT_EQ(list.runs[1].swept, (Value::Map{{"optimizer.sgd.learning_rate", 0.2}}));
  EXPECT_EQ(list.runs[2].pool, "fake");
  EXPECT_THAT(list.runs[0].summary_json, HasSubstr("\"job\""));
  const std::string path = "/v1/jobs/" + std::to_string(id);
  EXPECT_EQ(client.get(path + "/runs/1/files/objective.csv").body, "of the second\n");
  EXPECT_EQ(client.get(path + "/runs/0/files/objective.csv").body, "of the first\n");
  EXPECT_EQ(client.get(path + "/files/objective.csv").body, "of the first\n");
  EXPECT_EQ(client.get(path + "/runs/2").status, 200);
}

TEST_F(RunsTest, TheTableOfAllRunsIsThereWhenTheyHaveEnded) {
  FakePool pool(client, "fake", 1);
  const std::uint32_t id = submit(client, sweep_of({0.1, 0.2}));
  for (const char* objective : {"0.5", "0.25"}) {
    const auto start = pool.expect<StartRun>();
    EXPECT_EQ(show(client, id).summary_json, "");
    pool.send(RunEnded{start.run, RunOutcome::succeeded, "",
                       std::string("{\"objective_last\": ") + objective + "}"});
    while (!std::holds_alternative<RunEndStored>(*pool.receive())) {
    }
  }
  const Job job = wait_for(client, id, JobState::succeeded);
  EXPECT_THAT(job.summary_json, HasSubstr("\"by_final\""));
  EXPECT_THAT(job.summary_json, HasSubstr("0.25"));
  EXPECT_EQ(show(client, id).summary_json, job.summary_json);
  const auto list = decode<JobList>(client.get("/v1/jobs").body, WireFormat::json);
  EXPECT_EQ(list.jobs.at(0).summary_json, "") << "lists are short";
}

TEST_F(RunsTest, AFailedRunLeavesTheOthersAlone) {
  FakePool pool(client, "fake", 3);
  const std::uint32_t id = submit(client, sweep_of({0.1, 0.2, 0.4}));
  for (int i = 0; i < 3; ++i) {
    const auto start = pool.expect<StartRun>();
    if (i == 1) {
      pool.end(start.run, RunOutcome::failed, "out of memory");
    } else {
      pool.run(start, 1);
    }
  }
  const Job job = wait_for(client, id, JobState::failed);
  EXPECT_EQ(job.message, "1 of 3 runs failed; run 1: out of memory");
  EXPECT_EQ(runs(id).runs[1].state, JobState::failed);
  EXPECT_EQ(runs(id).runs[2].state, JobState::succeeded);
}

TEST_F(RunsTest, CancellingEndsWhatRunsAndDropsWhatWaits) {
  FakePool pool(client, "fake", 1);
  const std::uint32_t id = submit(client, sweep_of({0.1, 0.2, 0.4}));
  const auto start = pool.expect<StartRun>();
  EXPECT_EQ(client.send("POST", "/v1/jobs/" + std::to_string(id) + "/cancel").status, 200);
  EXPECT_EQ(pool.expect<CancelRun>().run, start.run);
  pool.end(start.run, RunOutcome::cancelled);
  const Job job = wait_for(client, id, JobState::cancelled);
  EXPECT_EQ(job.message, "cancelled; 0 of 3 runs had ended");
  for (const auto& run : runs(id).runs) EXPECT_EQ(run.state, JobState::cancelled);
}

TEST_F(RunsTest, ARestartedDaemonGoesOnWithWhatHadNotEnded) {
  const std::uint32_t id = submit(client, sweep_of({0.1, 0.2, 0.4, 0.8}));
  {
    FakePool pool(client, "fake", 2);
    const auto first = pool.expect<StartRun>();
    const auto second = pool.expect<StartRun>();
    pool.send_points(second.run, 0, 6);
    pool.run(first, 3);
    while (!std::holds_alternative<RunEndStored>(*pool.receive())) {
    }
    restart();
  }
  EXPECT_EQ(show(client, id).progress.runs.succeeded, 1u);
  FakePool pool(client, "again", 4);
  std::vector<RunId> started;
  for (int i = 0; i < 3; ++i) {
    const auto start = pool.expect<StartRun>();
    started.push_back(start.run);
    pool.run(start, 6);
  }
  const Job job = wait_for(client, id, JobState::succeeded);
  EXPECT_EQ(started.front(), (RunId{id, 1, 2}));
  EXPECT_THAT(ends(id, 4), ElementsAre(1, 1, 1, 1));
  EXPECT_EQ(points_of(events(client, id, "?kind=point&run=1")).size(), 6u) << "none twice";
}

TEST_F(RunsTest, TwentyThousandRunsAreAcceptedAtOnceAndListedInPages) {
  std::vector<double> rates;
  for (int i = 1; i <= 20'000; ++i) rates.push_back(i * 1e-6);
  const std::uint32_t id = submit(client, sweep_of(rates));
  EXPECT_EQ(show(client, id).progress.runs.total, 20'000u);
  const RunList page = runs(id, "?from=19900&limit=99");
  ASSERT_EQ(page.runs.size(), 99u);
  EXPECT_EQ(page.runs[0].number, 19'900u);
  EXPECT_EQ(page.runs[0].state, JobState::queued);
  EXPECT_EQ(page.next_from, 19'999u);
  EXPECT_EQ(runs(id, "?from=19999").runs.size(), 1u);
  EXPECT_EQ(runs(id, "?from=19999").next_from, 0u);
  EXPECT_EQ(runs(id, "?from=20000").runs.size(), 0u);
  EXPECT_EQ(client.send("POST", "/v1/jobs/" + std::to_string(id) + "/cancel").status, 200);
  EXPECT_EQ(show(client, id).progress.runs, (RunCounts{20'000, 0, 0, 0, 20'000}));
}

TEST_F(RunsTest, RunsThatAreNotThereAreRefused) {
  const std::uint32_t id = submit(client, sweep_of({0.1, 0.2}));
  const std::string path = "/v1/jobs/" + std::to_string(id) + "/runs";
  EXPECT_EQ(client.get(path + "/2").status, 404);
  EXPECT_EQ(client.get(path + "/x").status, 404);
  EXPECT_EQ(client.get(path + "/-1").status, 404);
  EXPECT_EQ(client.get(path + "?limit=0").status, 400);
  EXPECT_EQ(client.get(path + "/1/files").status, 409);
  EXPECT_EQ(client.get("/v1/jobs/99/runs").status, 404);
  EXPECT_EQ(client.get("/v1/jobs/" + std::to_string(id) + "/events?run=-1").status, 400);
}

TEST_F(RunsTest, AStreamTellsRunsApartAndCountsThem) {
  FakePool pool(client, "fake", 1);
  const std::uint32_t id = submit(client, sweep_of({0.1, 0.2}));
  Watcher watcher(client, id);
  const auto live = watcher.until<LiveFromHere>();
  ASSERT_TRUE(live);
  EXPECT_EQ(live->job.progress.runs.total, 2u);
  int left = 2;
  while (left > 0) {
    const auto frame = pool.receive();
    ASSERT_TRUE(frame);
    if (const auto* start = std::get_if<StartRun>(&*frame)) {
      pool.run(*start, 3);
      --left;
    }
  }
  const auto ended = watcher.until<JobEnded>();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->job.progress.runs.succeeded, 2u);
  expect_numbered(watcher.events(), 1);
  std::vector<int> points(2);
  for (const Event& event : watcher.events()) {
    if (std::holds_alternative<Point>(event.what)) ++points.at(event.run);
  }
  EXPECT_THAT(points, ElementsAre(3, 3));
}

}  // namespace
}  // namespace pipewright::test
