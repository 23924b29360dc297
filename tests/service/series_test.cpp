// The down-sampled series of a run: exact, whatever rows and summaries the store has made of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/base/text.hpp"
#include "daemon/store/journal.hpp"
#include "tests/service/support.hpp"

namespace pipewright::test {
namespace {

using testing::HasSubstr;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

/// Losses whose microbatches swap neighbours, an objective now and then, values that repeat and
/// some that are no numbers; ticks with gaps.
std::vector<Point> long_run(std::size_t count) {
  std::vector<Point> points;
  std::int64_t microbatch = 0;
  std::int64_t tick = -5;
  for (std::size_t i = 0; i < count; ++i) {
    const auto mixed = static_cast<std::int64_t>((i * 2654435761u) % 1009);
    tick += mixed == 7 ? 5000 : mixed % 3;
    if (i % 97 == 0) {
      points.push_back(
          {Series::objective, tick, static_cast<std::int64_t>(i), 0, static_cast<double>(mixed)});
      continue;
    }
    const double value = mixed == 3 ? nan : mixed == 5 ? -inf : static_cast<double>(mixed % 211);
    points.push_back({Series::last_stage_loss, tick, 0, microbatch ^ 1, value});
    ++microbatch;
  }
  return points;
}

/// When the journal takes the points of one commit, of which the store has one row or several.
std::int64_t time_of(std::size_t point, std::size_t per_commit) {
  return 3 + 40 * static_cast<std::int64_t>(point / per_commit);
}

std::int64_t x_of(const Point& point, std::int64_t index, std::int64_t time, XAxis x) {
  return x == XAxis::time      ? time
         : x == XAxis::tick    ? point.tick
         : x == XAxis::updates ? point.updates
         : x == XAxis::index   ? index
                               : point.microbatch;
}

/// What docs/http.md says, literally.
SeriesData expected(const std::vector<Point>& points, const SeriesQuery& query,
                    std::size_t per_commit) {
  std::vector<SeriesPoint> all, within;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i].series != query.series) continue;
    const auto index = static_cast<std::int64_t>(all.size());
    all.push_back({x_of(points[i], index, time_of(i, per_commit), query.x), points[i].value});
  }
  const auto less = [](const SeriesPoint& a, const SeriesPoint& b) { return a.x < b.x; };
  SeriesData data{.series = query.series, .x = query.x, .points = {}, .buckets = {}};
  data.from = query.from.value_or(std::min_element(all.begin(), all.end(), less)->x);
  data.to = query.to.value_or(std::max_element(all.begin(), all.end(), less)->x);
  for (const SeriesPoint& point : all) {
    if (point.x >= data.from && point.x <= data.to) within.push_back(point);
  }
  data.count = within.size();
  data.raw = within.size() <= 2 * query.buckets;
  if (data.raw) {
    data.points = within;
    return data;
  }
  data.width = static_cast<std::uint64_t>(data.to - data.from) / query.buckets + 1;
  const auto width = static_cast<std::int64_t>(data.width);
  for (std::int64_t begin = data.from; begin <= data.to; begin += width) {
    SeriesBucket bucket{.begin = begin, .min = {}, .max = {}};
    for (const SeriesPoint& point : within) {
      if (point.x < begin || point.x >= begin + width) continue;
      if (bucket.count++ == 0) bucket.first_x = point.x;
      bucket.last_x = point.x;
      bucket.last = point.value;
      if (!std::isfinite(point.value)) {
        ++bucket.not_finite;
        continue;
      }
      if (!bucket.min || point.value < *bucket.min) {
        bucket.min = point.value;
        bucket.min_x = point.x;
      }
      if (!bucket.max || point.value > *bucket.max) {
        bucket.max = point.value;
        bucket.max_x = point.x;
      }
    }
    if (bucket.count > 0) data.buckets.push_back(bucket);
  }
  return data;
}

/// All but next_sequence, bit for bit.
std::string text_of(SeriesData data) {
  data.next_sequence = 1;
  return encode(data, WireFormat::json);
}

struct SeriesTest : testing::Test {
  TemporaryFolder folder;
  std::unique_ptr<Store> store = std::make_unique<Store>(folder.path() / "pipewright.db");
  std::uint32_t job = 0;
  std::map<std::uint32_t, std::size_t> per_commit_;  // by run

  /// Stores the points of run `run` of a job of three runs, so many with each commit.
  void store_points(const std::vector<Point>& points, std::uint32_t run, std::size_t per_commit) {
    if (job == 0) job = store->add_job(small_job(), 1, 3, 1);
    Journal journal(*store);
    journal.add_job_state({job, JobState::running, {}, 1, {3, 1, 0, 0, 0}, 3}, 2);
    jobs::StoreRun running;
    running.job = job;
    running.run = run;
    running.state = JobState::running;
    running.attempt = 1;
    journal.add_run_state(running, "pool", 2);
    per_commit_[run] = per_commit;
    for (std::size_t first = 0; first < points.size(); first += per_commit) {
      const auto begin = points.begin() + static_cast<std::ptrdiff_t>(first);
      const auto end =
          points.begin() + static_cast<std::ptrdiff_t>(std::min(first + per_commit, points.size()));
      journal.add_points({{job, run, 1}, first, {begin, end}}, time_of(first, per_commit));
      journal.commit();
    }
  }
  void expect_exact(const std::vector<Point>& points, std::uint32_t run, SeriesQuery query) {
    EXPECT_EQ(text_of(store->series(job, run, query)),
              text_of(expected(points, query, per_commit_[run])))
        << "series " << static_cast<int>(query.series) << " x " << static_cast<int>(query.x);
  }
};

TEST_F(SeriesTest, BucketsAreExactOfLongRunsAndOfShortOnes) {
  for (const auto& [run, count, per_commit] :
       std::vector<std::tuple<std::uint32_t, std::size_t, std::size_t>>{
           {0, 60'000, 1777}, {1, 3'000, 100}, {2, 26'000, 26'000}}) {
    const std::vector<Point> points = long_run(count);
    store_points(points, run, per_commit);
    const std::int64_t end = points.back().tick;
    for (const std::size_t buckets : {1u, 7u, 200u, 1500u}) {
      expect_exact(points, run, {Series::last_stage_loss, XAxis::tick, {}, {}, buckets});
      expect_exact(points, run, {Series::last_stage_loss, XAxis::microbatch, {}, {}, buckets});
      expect_exact(points, run, {Series::last_stage_loss, XAxis::index, {}, {}, buckets});
      expect_exact(points, run, {Series::objective, XAxis::updates, {}, {}, buckets});
      expect_exact(points, run, {Series::last_stage_loss, XAxis::tick, end / 3, end / 2, buckets});
      expect_exact(points, run, {Series::objective, XAxis::tick, end / 3, {}, buckets});
      expect_exact(points, run, {Series::last_stage_loss, XAxis::time, {}, {}, buckets});
      expect_exact(points, run, {Series::objective, XAxis::time, 43, 1003, buckets});
      expect_exact(points, run, {Series::last_stage_loss, XAxis::index, 900, 25'100, buckets});
    }
  }
}

TEST_F(SeriesTest, ARunThatMakesFewPointsAtATimeHasRowsOfMany) {
  const std::vector<Point> points = long_run(23'000);
  store_points(points, 0, 7);
  for (const std::size_t buckets : {10u, 1000u}) {
    expect_exact(points, 0, {Series::last_stage_loss, XAxis::tick, {}, {}, buckets});
    expect_exact(points, 0, {Series::objective, XAxis::index, {}, {}, buckets});
    expect_exact(points, 0, {Series::last_stage_loss, XAxis::time, {}, {}, buckets});
  }
  const EventList some = store->events(job, {.from = 11'111, .limit = 3, .kind = {}, .run = 0});
  ASSERT_EQ(some.events.size(), 3u);
  expect_numbered(some.events, 11'111);
  sqlite::Database database(folder.path() / "pipewright.db");
  sqlite::Statement count(database, "SELECT COUNT(*), MAX(length(data)) FROM events WHERE kind=2");
  ASSERT_TRUE(count.step());
  EXPECT_LT(count.integer(0), 60) << "rows, of up to 512 points";
  EXPECT_LT(count.integer(1), 512 * 17);
}

TEST_F(SeriesTest, FewPointsComeAsTheyAre) {
  const std::vector<Point> points = long_run(30'000);
  store_points(points, 0, 30'000);
  const SeriesData few =
      store->series(job, 0, {Series::last_stage_loss, XAxis::index, 25'000, 25'199, 100});
  EXPECT_TRUE(few.raw);
  EXPECT_EQ(few.points.size(), 200u);
  EXPECT_EQ(few.points.front().x, 25'000);
  const SeriesData more =
      store->series(job, 0, {Series::last_stage_loss, XAxis::index, 25'000, 25'200, 100});
  EXPECT_FALSE(more.raw);
  EXPECT_EQ(more.count, 201u);
  EXPECT_LE(more.buckets.size(), 100u);
}

TEST_F(SeriesTest, TheWholeRangeOfNumbersCanBeAskedFor) {
  const std::vector<Point> points = long_run(25'000);
  store_points(points, 0, 25'000);
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const SeriesData all =
      store->series(job, 0, {Series::last_stage_loss, XAxis::tick, -most, most, 10});
  std::uint64_t sum = 0;
  for (const SeriesBucket& bucket : all.buckets) sum += bucket.count;
  EXPECT_EQ(sum, all.count);
  EXPECT_EQ(all.width, 1 + 2 * static_cast<std::uint64_t>(most) / 10);
  const SeriesData none = store->series(job, 0, {Series::objective, XAxis::tick, most - 5, {}, 10});
  EXPECT_TRUE(none.raw);
  EXPECT_EQ(none.count, 0u);
}

TEST_F(SeriesTest, AStoreOfTheVersionBeforeIsSummarised) {
  const std::vector<Point> points = long_run(40'000);
  store_points(points, 1, 999);
  SeriesQuery query;
  query.series = Series::last_stage_loss;
  const std::string before = text_of(store->series(job, 1, query));
  store.reset();
  {
    sqlite::Database database(folder.path() / "pipewright.db");
    database.execute(
        "ALTER TABLE runs DROP COLUMN makers;"
        "ALTER TABLE jobs DROP COLUMN last_stage_loss; ALTER TABLE runs DROP COLUMN "
        "last_stage_loss;"
        "DROP TABLE point_summaries; ALTER TABLE jobs DROP COLUMN priority;"
        "PRAGMA user_version = 4");
  }
  store = std::make_unique<Store>(folder.path() / "pipewright.db");
  EXPECT_EQ(text_of(store->series(job, 1, query)), before);
  sqlite::Database database(folder.path() / "pipewright.db");
  sqlite::Statement count(database, "SELECT COUNT(*) FROM point_summaries");
  ASSERT_TRUE(count.step());
  EXPECT_GT(count.integer(0), 20) << "nothing was summarised";
}

struct SeriesRouteTest : testing::Test {
  TemporaryFolder folder;
  RunningDaemon daemon{{.data_dir = folder.path() / "data"}};
  Client client = daemon.client();
};

TEST_F(SeriesRouteTest, ASeriesComesInBothFormsAndSaysWhereTheStreamGoesOn) {
  FakePool pool(client);
  const std::uint32_t id = submit(client);
  pool.run(pool.expect<StartRun>(), 100);
  const Job job = wait_for(client, id, JobState::succeeded);
  const std::string target = "/v1/jobs/" + std::to_string(id) + "/runs/0/series";
  const Reply json = client.get(target + "?series=last_stage_loss&x=microbatch&buckets=10");
  ASSERT_EQ(json.status, 200) << json.body;
  const Reply binary = client.get(target + "?series=last_stage_loss&x=microbatch&buckets=10",
                                  {{"Accept", "application/x-protobuf"}});
  const SeriesData data = decode<SeriesData>(json.body, WireFormat::json);
  EXPECT_EQ(text_of(data), text_of(decode<SeriesData>(binary.body, WireFormat::protobuf)));
  EXPECT_EQ(data.next_sequence, job.last_sequence + 1);
  std::vector<Point> points = some_points(0, 100);
  EXPECT_EQ(text_of(data),
            text_of(expected(points, {Series::last_stage_loss, XAxis::microbatch, {}, {}, 10}, 1)));
  EXPECT_EQ(decode<SeriesData>(client.get(target).body, WireFormat::json).series,
            Series::objective);
}

TEST_F(SeriesRouteTest, WhatIsNoSeriesIsRefusedWithTheReason) {
  const std::uint32_t id = submit(client);
  const std::string target = "/v1/jobs/" + std::to_string(id) + "/runs/0/series";
  EXPECT_EQ(client.get(target).status, 200) << "a run that has not begun has no points";
  EXPECT_EQ(client.get("/v1/jobs/9/runs/0/series").status, 404);
  EXPECT_EQ(client.get("/v1/jobs/1/runs/1/series").status, 404);
  for (const auto& [parameters, why] : std::vector<std::pair<std::string, std::string>>{
           {"?series=loss", "objective, last_stage_loss"},
           {"?x=age", "tick, updates, microbatch, index, time"},
           {"?x=microbatch", "only last_stage_loss has it"},
           {"?series=last_stage_loss&x=updates", "have tick, microbatch, index and time"},
           {"?buckets=0", "from 1 to 4000"},
           {"?from=5&to=4", "from 5 to"},
           {"?from=a", "must be a whole number"},
           {"?bucket=5", "buckets"}}) {
    const Reply reply = client.get(target + parameters);
    EXPECT_EQ(reply.status, 400) << parameters;
    EXPECT_THAT(reply.body, HasSubstr(why)) << parameters;
  }
}

}  // namespace
}  // namespace pipewright::test
