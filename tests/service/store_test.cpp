// The store, its batches of points and the journal's dedupe.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "core/base/text.hpp"
#include "daemon/store/journal.hpp"
#include "daemon/store/point_blob.hpp"
#include "tests/service/support.hpp"

namespace pipewright::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Bit for bit, NaN too.
std::string text_of(const Point& point) {
  return std::to_string(static_cast<int>(point.series)) + " " + std::to_string(point.tick) + " " +
         std::to_string(point.updates) + " " + std::to_string(point.microbatch) + " " +
         format_number(point.value);
}
std::vector<std::string> texts_of(const std::vector<Point>& points) {
  std::vector<std::string> texts;
  for (const Point& point : points) texts.push_back(text_of(point));
  return texts;
}

template <class Thrown, class Function>
std::string message_of(Function&& function) {
  try {
    function();
  } catch (const Thrown& error) {
    return error.what();
  }
  return "nothing was thrown";
}

struct StoreTest : testing::Test {
  TemporaryFolder folder;
  std::unique_ptr<Store> store = std::make_unique<Store>(file());

  std::filesystem::path file() const { return folder.path() / "pipewright.db"; }
  void reopen() {
    store.reset();
    store = std::make_unique<Store>(file());
  }
  static jobs::StoreRun state(JobId job, JobState state, std::uint32_t attempt,
                              std::string message = {}) {
    jobs::StoreRun change;
    change.job = job;
    change.state = state;
    change.attempt = attempt;
    change.message = std::move(message);
    return change;
  }
  /// What the queue says of the only run of a job, and so of the job.
  static void add_state(Journal& journal, const jobs::StoreRun& run, const std::string& pool,
                        std::int64_t now_unix_ms) {
    journal.add_run_state(run, pool, now_unix_ms);
    journal.add_job_state({run.job, run.state, run.message, run.attempt, {1, 0, 0, 0, 0}, 1},
                          now_unix_ms);
  }
};

TEST(PointBlob, AllPointsComeBack) {
  std::vector<Event> events;
  for (const Point& point : some_points(0, 1000)) {
    events.push_back({events.size() + 5,
                      1'700'000'000'000 + static_cast<std::int64_t>(events.size()) / 10, point});
  }
  const auto extreme = std::numeric_limits<std::int64_t>::max();
  const auto least = std::numeric_limits<std::int64_t>::min();
  events.push_back({1005, least, Point{Series::objective, extreme, least, 0, NAN}});
  events.push_back({1006, extreme, Point{Series::objective, least, extreme, -1, -INFINITY}});
  const std::string blob = encode_points(events);
  EXPECT_LT(blob.size(), events.size() * 16);
  const std::vector<Event> back = decode_points(blob, 5);
  ASSERT_EQ(back.size(), events.size());
  expect_numbered(back, 5);
  for (std::size_t i = 0; i < back.size(); ++i) {
    EXPECT_EQ(back[i].time_unix_ms, events[i].time_unix_ms);
    EXPECT_EQ(text_of(std::get<Point>(back[i].what)), text_of(std::get<Point>(events[i].what)));
  }
}

TEST(PointBlob, ATruncatedBlobIsRefused) {
  const std::vector<Event> events{{1, 2, Point{Series::objective, 3, 4, 5, 6}}};
  const std::string blob = encode_points(events);
  for (std::size_t size = 2; size < blob.size(); ++size) {
    EXPECT_THROW(decode_points(blob.substr(0, size), 1), DataError) << size;
  }
}

TEST_F(StoreTest, AJobIsThereAfterReopening) {
  const std::uint32_t id = store->add_job(small_job(2), 2, 1, 1234);
  reopen();
  const std::optional<JobRecord> record = store->find(id);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->job.state, JobState::queued);
  EXPECT_EQ(record->job.submitted_unix_ms, 1234);
  EXPECT_EQ(record->job.last_sequence, 1u);
  EXPECT_EQ(record->ranks_wanted, 2);
  const Value spec = store->spec(id).value();
  EXPECT_EQ(find_path(spec, "schedule.pipedream.stages")->as_integer(), 2);
  EXPECT_EQ(find_path(spec, "optimizer.sgd.learning_rate")->as_real(), 0.1);
  EXPECT_EQ(spec.at("name").as_text(), "small");
  EXPECT_FALSE(store->find(id + 1));
}

const Maker intel{"0.1.0", "abc", "b1", "Intel"};
const Maker amd{"0.1.0", "abc", "b1", "AMD"};

TEST_F(StoreTest, AFullHistoryIsThereAfterReopening) {
  const std::uint32_t id = store->add_job(small_job(), 1, 1, 1);
  {
    Journal journal(*store);
    jobs::StoreRun starting = state(id, JobState::starting, 1);
    starting.ranks = {2, 3};
    add_state(journal, starting, "local", 2);
    add_state(journal, state(id, JobState::running, 1), "", 3);
    for (const Maker& maker : {intel, amd, intel}) journal.add_maker({id, 0, 1}, maker);
    journal.add_log({id, 0, 1}, {Severity::warning, "slow"}, 4);
    journal.add_points({{id, 0, 1}, 0, some_points(0, 10'000)}, 5);
    journal.set_progress({id, 0, 1}, {1, 2, 3, 4, 5, 6, {}});
    jobs::StoreRun end = state(id, JobState::succeeded, 1, "diverged at tick 3");
    end.summary_json = "{}";
    add_state(journal, end, "", 6);
    journal.commit();
  }
  reopen();
  const EventList all = store->events(id, {.from = 1, .limit = 20'000, .kind = {}, .run = {}});
  ASSERT_EQ(all.events.size(), 10'005u);
  expect_numbered(all.events, 1);
  EXPECT_EQ(all.next_sequence, 10'006u);
  EXPECT_EQ(texts_of(points_of(all)), texts_of(some_points(0, 10'000)));
  EXPECT_EQ(std::get<LogLine>(all.events[3].what).text, "slow");
  EXPECT_EQ(std::get<StateChange>(all.events.back().what).message, "diverged at tick 3");
  const Job job = store->find(id)->job;
  EXPECT_EQ(job.state, JobState::succeeded);
  EXPECT_EQ(job.pool, "local");
  EXPECT_THAT(job.ranks, ElementsAre(2, 3));
  EXPECT_EQ(job.started_unix_ms, 3);
  EXPECT_EQ(job.ended_unix_ms, 6);
  EXPECT_EQ(job.progress.microbatches_total, 6);
  EXPECT_EQ(job.summary_json, "{}");
  EXPECT_THAT(job.makers, ElementsAre(intel, amd));
}

TEST_F(StoreTest, EventsArePagedWithinABatchOfPoints) {
  const std::uint32_t id = store->add_job(small_job(), 1, 1, 1);
  Journal journal(*store);
  journal.add_points({{id, 0, 1}, 0, some_points(0, 100)}, 5);
  journal.add_log({id, 0, 1}, {Severity::info, "end"}, 6);
  journal.commit();
  std::vector<Event> collected;
  std::uint64_t from = 1;
  while (true) {
    const EventList page = store->events(id, {.from = from, .limit = 7, .kind = {}, .run = {}});
    if (page.events.empty()) break;
    EXPECT_LE(page.events.size(), 7u);
    EXPECT_EQ(page.next_sequence, page.events.back().sequence + 1);
    collected.insert(collected.end(), page.events.begin(), page.events.end());
    from = page.next_sequence;
  }
  ASSERT_EQ(collected.size(), 102u);
  expect_numbered(collected, 1);
  EXPECT_EQ(from, 103u);
}

TEST_F(StoreTest, EventsOfOneKindGoToTheEndOfTheHistory) {
  const std::uint32_t id = store->add_job(small_job(), 1, 1, 1);
  Journal journal(*store);
  journal.add_log({id, 0, 1}, {Severity::info, "first"}, 6);
  journal.add_points({{id, 0, 1}, 0, some_points(0, 100)}, 5);
  journal.commit();
  const EventList logs =
      store->events(id, {.from = 1, .limit = 10, .kind = EventKind::log, .run = {}});
  ASSERT_EQ(logs.events.size(), 1u);
  EXPECT_EQ(logs.next_sequence, 103u);
  EXPECT_EQ(store->events(id, {.from = 1, .limit = 10, .kind = EventKind::point, .run = {}})
                .events.size(),
            10u);
}

TEST_F(StoreTest, RepeatedPointsAreNotEventsAgain) {
  const std::uint32_t id = store->add_job(small_job(), 1, 1, 1);
  {
    Journal journal(*store);
    add_state(journal, state(id, JobState::running, 1), "", 1);
    EXPECT_EQ(journal.add_points({{id, 0, 1}, 0, some_points(0, 60)}, 5), 60u);
    journal.commit();
  }
  reopen();
  Journal journal(*store);
  EXPECT_EQ(journal.add_points({{id, 0, 2}, 0, some_points(0, 40)}, 6), 40u);
  EXPECT_EQ(journal.pending_events(), 0u);
  EXPECT_EQ(journal.add_points({{id, 0, 2}, 40, some_points(40, 50)}, 7), 90u);
  EXPECT_EQ(journal.pending_events(), 30u);
  journal.commit();
  const EventList all = store->events(id, {.from = 1, .limit = 1000, .kind = {}, .run = {}});
  expect_numbered(all.events, 1);
  EXPECT_EQ(texts_of(points_of(all)), texts_of(some_points(0, 90)));
}

TEST_F(StoreTest, PointsAfterAGapAreRefused) {
  const std::uint32_t id = store->add_job(small_job(), 1, 1, 1);
  Journal journal(*store);
  EXPECT_THAT(message_of<ProtocolError>([&] {
                journal.add_points({{id, 0, 1}, 3, some_points(3, 1)}, 5);
              }),
              HasSubstr("run 0 begin at index 3; the next is 0"));
}

TEST_F(StoreTest, NothingIsSeenBeforeTheCommit) {
  const std::uint32_t id = store->add_job(small_job(), 1, 1, 1);
  Journal journal(*store);
  journal.add_points({{id, 0, 1}, 0, some_points(0, 5)}, 5);
  EXPECT_EQ(journal.find(id)->last_sequence, 1u);
  EXPECT_EQ(store->events(id, EventQuery{}).events.size(), 1u);
  const auto committed = journal.commit();
  ASSERT_EQ(committed.size(), 1u);
  EXPECT_EQ(committed[0].events->next_sequence, 7u);
  EXPECT_EQ(store->events(id, EventQuery{}).events.size(), 6u);
}

TEST_F(StoreTest, LastAndBestObjectiveKeepNaN) {
  const std::uint32_t id = store->add_job(small_job(), 1, 1, 1);
  Journal journal(*store);
  add_state(journal, state(id, JobState::running, 1), "", 1);
  journal.add_points({{id, 0, 1},
                      0,
                      {{Series::objective, 0, 0, 0, 2.0},
                       {Series::objective, 1, 1, 0, 1.0},
                       {Series::objective, 2, 2, 0, NAN}}},
                     5);
  journal.commit();
  reopen();
  const Job job = store->find(id)->job;
  EXPECT_TRUE(std::isnan(job.objective_last.value()));
  EXPECT_EQ(job.objective_best, 1.0);
}

TEST_F(StoreTest, TheLastLossIsKeptOverARestart) {
  const std::uint32_t id = store->add_job(small_job(), 1, 1, 1);
  Journal journal(*store);
  add_state(journal, state(id, JobState::running, 1), "", 3);
  journal.add_points({{id, 0, 1}, 0, some_points(0, 8)}, 5);
  journal.commit();
  reopen();
  EXPECT_EQ(store->find(id).value().job.last_stage_loss, -3.5);
  EXPECT_EQ(store->find_run(id, 0).value().run.last_stage_loss, -3.5);
}

TEST_F(StoreTest, ListsArePagedNewestFirst) {
  for (int i = 0; i < 5; ++i) store->add_job(small_job(), 1, 1, i);
  JobList page = store->list({.limit = 2, .before = 0, .state = {}});
  EXPECT_EQ(page.jobs[0].id, 5u);
  EXPECT_EQ(page.next_before, 4u);
  page = store->list({.limit = 3, .before = 4, .state = {}});
  ASSERT_EQ(page.jobs.size(), 3u);
  EXPECT_EQ(page.jobs[2].id, 1u);
  EXPECT_EQ(page.next_before, 0u);
  EXPECT_THAT(store->list({.limit = 5, .before = 0, .state = JobState::failed}).jobs, IsEmpty());
  EXPECT_EQ(store->unfinished().size(), 5u);
  EXPECT_EQ(store->unfinished().front().job.id, 1u);
}

TEST_F(StoreTest, RunsOfAJobKeepTheirOwnPointsAndStates) {
  const std::uint32_t id = store->add_job(small_job(), 1, 3, 1);
  {
    Journal journal(*store);
    for (std::uint32_t run = 0; run < 2; ++run) {
      jobs::StoreRun starting = state(id, JobState::starting, 1);
      starting.run = run;
      starting.ranks = {run};
      journal.add_run_state(starting, "local", 2);
    }
    journal.add_job_state({id, JobState::running, "", 1, {3, 2, 0, 0, 0}, 2}, 3);
    journal.add_points({{id, 1, 1}, 0, some_points(0, 10)}, 4);
    journal.add_points({{id, 0, 1}, 0, some_points(0, 5)}, 5);
    journal.add_points({{id, 1, 1}, 10, some_points(10, 10)}, 6);
    jobs::StoreRun end = state(id, JobState::succeeded, 1, "diverged at tick 3");
    end.run = 1;
    end.summary_json = "{\"a\": 1}";
    journal.add_run_state(end, "", 7);
    journal.add_job_state({id, JobState::running, "", 1, {3, 1, 1, 0, 0}, 2}, 7);
    journal.commit();
    EXPECT_EQ(journal.run_under_way(id, 1), nullptr);
    ASSERT_NE(journal.run_under_way(id, 0), nullptr);
  }
  reopen();
  const EventList all = store->events(id, {.from = 1, .limit = 1000, .kind = {}, .run = {}});
  expect_numbered(all.events, 1);
  EXPECT_EQ(all.events.size(), 1 + 2 + 1 + 25 + 1u) << "the second RUNNING of the job is no event";
  const EventList of_1 = store->events(id, {.from = 1, .limit = 1000, .kind = {}, .run = 1});
  EXPECT_EQ(texts_of(points_of(of_1)), texts_of(some_points(0, 20)));
  EXPECT_EQ(of_1.events.size(), 22u);
  for (const Event& event : of_1.events) EXPECT_EQ(event.run, 1u);
  EXPECT_EQ(std::get<RunStateChange>(of_1.events.back().what).message, "diverged at tick 3");
  const auto of_0 =
      store->events(id, {.from = 1, .limit = 1000, .kind = EventKind::point, .run = 0});
  EXPECT_EQ(texts_of(points_of(of_0)), texts_of(some_points(0, 5)));

  const JobRecord job = store->find(id).value();
  EXPECT_EQ(job.job.progress.runs, (RunCounts{3, 1, 1, 0, 0}));
  EXPECT_EQ(job.next_run, 2u);
  EXPECT_EQ(job.job.objective_best, some_points(18, 1)[0].value);
  const std::vector<RunRecord> runs = store->runs(id, 0, 10);
  ASSERT_EQ(runs.size(), 2u) << "a run that was never started has no record";
  EXPECT_EQ(runs[0].run.state, JobState::starting);
  EXPECT_EQ(runs[0].point_count, 5u);
  EXPECT_EQ(runs[1].run.state, JobState::succeeded);
  EXPECT_EQ(runs[1].run.summary_json, "{\"a\": 1}");
  EXPECT_THAT(runs[1].run.ranks, ElementsAre(1));
  EXPECT_EQ(runs[1].run.objective_last, some_points(18, 1)[0].value);
  EXPECT_EQ(store->runs(id, 1, 10).size(), 1u);
  EXPECT_EQ(store->unfinished_runs(id).size(), 1u);
  EXPECT_FALSE(store->first_failed_run(id));
}

TEST_F(StoreTest, AStoreOfAnOlderVersionIsRefused) {
  store.reset();
  {
    sqlite::Database database(file());
    database.execute("PRAGMA user_version = 1");
  }
  EXPECT_THAT(message_of<StoreError>([&] { Store again(file()); }),
              HasSubstr("schema 1; this one knows 8"));
}

TEST_F(StoreTest, AStoreOfTheVersionsBeforeIsBroughtUpToDate) {
  constexpr const char* to_version_7 =
      "ALTER TABLE runs DROP COLUMN makers; PRAGMA user_version = 7;";
  constexpr const char* to_version_5 =
      "ALTER TABLE jobs DROP COLUMN last_stage_loss; ALTER TABLE runs DROP COLUMN last_stage_loss;"
      "PRAGMA user_version = 5;";
  constexpr const char* to_version_4 =
      "DROP TABLE point_summaries; ALTER TABLE jobs DROP COLUMN priority;"
      "PRAGMA user_version = 4;";
  constexpr const char* to_version_3 =
      "DROP INDEX jobs_by_key; ALTER TABLE jobs DROP COLUMN user;"
      "CREATE UNIQUE INDEX jobs_by_key ON jobs(idempotency_key) WHERE idempotency_key IS NOT NULL;"
      "PRAGMA user_version = 3;";
  constexpr const char* to_version_2 =
      "DROP INDEX jobs_by_key; DROP INDEX jobs_by_end;"
      "ALTER TABLE jobs DROP COLUMN idempotency_key; PRAGMA user_version = 2;";
  for (const bool even_older : {false, true}) {
    const std::string key = even_older ? "" : "before";
    const std::uint32_t id = store->add_job(small_job(2), 2, 1, 1234, {.idempotency_key = key});
    store.reset();
    {
      sqlite::Database database(file());
      database.execute(to_version_7);
      database.execute(to_version_5);
      database.execute(to_version_4);
      database.execute(to_version_3);
      if (even_older) database.execute(to_version_2);
    }
    reopen();
    const Job job = store->find(id).value().job;
    EXPECT_EQ(job.submitted_unix_ms, 1234);
    EXPECT_EQ(job.user, admin_user);
    if (!even_older) {
      EXPECT_EQ(store->find_key({.idempotency_key = key}), id);
    }
    const Submission by{"alice", even_older ? "key 2" : "key 3"};
    const std::uint32_t next = store->add_job(small_job(), 1, 1, 1, by);
    reopen();
    EXPECT_EQ(store->find_key(by), next);
    EXPECT_EQ(store->find(next).value().job.user, "alice");
  }
}

TEST_F(StoreTest, RunsOfVersion7AreThereWithoutMakersAndGetThem) {
  const std::uint32_t id = store->add_job(small_job(), 1, 1, 1);
  {
    Journal journal(*store);
    add_state(journal, state(id, JobState::running, 1), "", 3);
    journal.commit();
  }
  store.reset();
  {
    sqlite::Database database(file());
    database.execute("ALTER TABLE runs DROP COLUMN makers; PRAGMA user_version = 7;");
  }
  reopen();
  EXPECT_EQ(store->find_run(id, 0)->run.state, JobState::running);
  EXPECT_THAT(store->find_run(id, 0)->run.makers, IsEmpty());
  Journal journal(*store);
  journal.add_maker({id, 0, 1}, amd);
  EXPECT_TRUE(journal.dirty());
  journal.commit();
  journal.add_maker({id, 0, 1}, amd);
  EXPECT_FALSE(journal.dirty()) << "it says so again when its pool comes back";
  reopen();
  EXPECT_THAT(store->find_run(id, 0)->run.makers, ElementsAre(amd));
}

TEST_F(StoreTest, AKeyIsOneUsersOwn) {
  const std::uint32_t of_alice = store->add_job(small_job(), 1, 1, 1, {"alice", "key"});
  EXPECT_FALSE(store->find_key({"bob", "key"}));
  const std::uint32_t of_bob = store->add_job(small_job(), 1, 1, 1, {"bob", "key"});
  EXPECT_EQ(store->find_key({"alice", "key"}), of_alice);
  EXPECT_EQ(store->find_key({"bob", "key"}), of_bob);
}

TEST_F(StoreTest, AStoreOfANewerVersionIsRefused) {
  store.reset();
  {
    sqlite::Database database(file());
    database.execute("PRAGMA user_version = 99");
  }
  EXPECT_THAT(message_of<StoreError>([&] { Store again(file()); }), HasSubstr("schema 99"));
}

TEST_F(StoreTest, AFileThatIsNoDatabaseIsRefused) {
  store.reset();
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file().string() + suffix);
  std::ofstream(file()) << std::string(4096, 'x');
  EXPECT_THAT(message_of<StoreError>([&] { Store again(file()); }), HasSubstr("not a database"));
}

}  // namespace
}  // namespace pipewright::test
