// The down-sampled series of a run. The first rows of points of a run (head_points) are read each
// time; of each row after them the table point_summaries has an entry per series, so that only rows
// are read that a bucket's edge goes through: for an x that never decreases at most one per bucket.
#include <algorithm>
#include <cmath>
#include <set>

#include "daemon/store/point_blob.hpp"
#include "daemon/store/point_summary.hpp"
#include "daemon/store/store.hpp"

namespace pipewright {
namespace {

// Points of a run before its first row with summaries. Most runs have less, and no summaries.
constexpr std::uint64_t head_points = 20'000;

void add(SeriesBucket& bucket, const SeriesPoint& point) {
  if (bucket.count++ == 0) bucket.first_x = point.x;
  bucket.last_x = point.x;
  bucket.last = point.value;
  if (!std::isfinite(point.value)) {
    ++bucket.not_finite;
    return;
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

/// All points of a summary, which lie in the bucket.
void add(SeriesBucket& bucket, const PointSummary& summary, std::size_t axis) {
  const auto point = [&](const PlacedValue& value) {
    return SeriesPoint{value.place[axis], value.value};
  };
  const std::uint64_t count = bucket.count + summary.count;
  const std::uint64_t not_finite = bucket.not_finite + summary.not_finite;
  add(bucket, point(summary.first));
  if (summary.count > summary.not_finite) {
    add(bucket, point(summary.min));
    add(bucket, point(summary.max));
  }
  add(bucket, point(summary.last));
  bucket.count = count;
  bucket.not_finite = not_finite;
}

/// The points of the run's rows without summaries, and when they were taken.
template <class OnPoint>
void each_head_point(sqlite::Database& database, std::uint32_t job, std::uint32_t run,
                     const OnPoint& on_point) {
  sqlite::Statement select(database,
                           "SELECT data FROM events WHERE job=?1 AND run=?2 AND kind=?3"
                           " ORDER BY last_sequence");
  select.bind(std::int64_t{job}, std::int64_t{run}, static_cast<std::int64_t>(EventKind::point));
  std::uint64_t seen = 0;
  while (seen < head_points && select.step()) {
    PointReader points(select.blob(0));
    for (; points.next(); ++seen) on_point(points.point(), points.time_unix_ms());
  }
}

/// One series of a run as it is stored.
class StoredSeries {
 public:
  StoredSeries(sqlite::Database& database, std::uint32_t job, std::uint32_t run,
               const SeriesQuery& query)
      : job_(job),
        series_(query.series),
        axis_(static_cast<std::size_t>(query.x) - 1),
        row_(database,
             "SELECT data FROM events WHERE job=?1 AND last_sequence>=?2"
             " ORDER BY last_sequence LIMIT 1") {
    read_head(database, run);
    sqlite::Statement select(database,
                             "SELECT sequence, data FROM point_summaries"
                             " WHERE job=?1 AND run=?2 AND series=?3 ORDER BY first_index");
    select.bind(std::int64_t{job}, std::int64_t{run}, static_cast<std::int64_t>(series_));
    while (select.step()) {
      pieces_.push_back({select.integer(0), decode_summary(select.blob(1))});
    }
  }

  SeriesData data(const SeriesQuery& query) {
    SeriesData data{.series = query.series, .x = query.x, .points = {}, .buckets = {}};
    set_range(query, data);
    each(
        data, [&](const SeriesPoint&) { ++data.count; },
        [&](const PointSummary& summary) {
          data.count += summary.count;
          return true;
        });
    data.raw = data.count <= 2 * query.buckets;
    if (data.raw) {
      each(
          data, [&](const SeriesPoint& point) { data.points.push_back(point); },
          [](const PointSummary&) { return false; });
    } else {
      fill_buckets(query.buckets, data);
    }
    return data;
  }

 private:
  struct Piece {
    std::int64_t sequence = 0;  // of an event of its row
    PointSummary summary;
  };

  void read_head(sqlite::Database& database, std::uint32_t run) {
    std::int64_t index = 0;
    each_head_point(database, job_, run, [&](const Point& point, std::int64_t time) {
      if (point.series == series_) head_.push_back(placed(placed_value(point, index++, time)));
    });
  }

  SeriesPoint placed(const PlacedValue& value) const { return {value.place[axis_], value.value}; }

  void set_range(const SeriesQuery& query, SeriesData& data) const {
    std::int64_t low = std::numeric_limits<std::int64_t>::max();
    std::int64_t high = std::numeric_limits<std::int64_t>::min();
    for (const SeriesPoint& point : head_) {
      low = std::min(low, point.x);
      high = std::max(high, point.x);
    }
    for (const Piece& piece : pieces_) {
      low = std::min(low, piece.summary.low[axis_]);
      high = std::max(high, piece.summary.high[axis_]);
    }
    if (low > high) low = high = query.from.value_or(query.to.value_or(0));  // no points
    data.from = query.from.value_or(query.to ? std::min(low, *query.to) : low);
    data.to = query.to.value_or(std::max(high, data.from));
  }

  /// Calls on_point for the points from data.from to data.to in their order; of those of a summary
  /// only when on_summary, which is asked before, says false.
  template <class OnPoint, class OnSummary>
  void each(const SeriesData& data, const OnPoint& on_point, const OnSummary& on_summary) {
    const auto see = [&](const SeriesPoint& point) {
      if (point.x >= data.from && point.x <= data.to) on_point(point);
    };
    for (const SeriesPoint& point : head_) see(point);
    for (const Piece& piece : pieces_) {
      const std::int64_t low = piece.summary.low[axis_], high = piece.summary.high[axis_];
      if (high < data.from || low > data.to) continue;
      if (low >= data.from && high <= data.to && on_summary(piece.summary)) continue;
      each_point_of(piece, see);
    }
  }

  template <class OnPoint>
  void each_point_of(const Piece& piece, const OnPoint& on_point) {
    const PlacedValue& first = piece.summary.first;
    if (piece.summary.count == 1) return on_point(placed(first));
    if (!row_.bind(std::int64_t{job_}, piece.sequence).step()) {
      throw StoreError("job " + std::to_string(job_) + ": its points from event " +
                       std::to_string(piece.sequence) + " on are not in the store");
    }
    std::int64_t index = first.place[static_cast<std::size_t>(XAxis::index) - 1];
    PointReader points(row_.blob(0));
    while (points.next()) {
      if (points.point().series != series_) continue;
      on_point(placed(placed_value(points.point(), index++, points.time_unix_ms())));
    }
  }

  /// Differences of 64-bit numbers are unsigned: they need one bit more.
  void fill_buckets(std::size_t buckets_max, SeriesData& data) {
    const auto distance = [&](std::int64_t x) {
      return static_cast<std::uint64_t>(x) - static_cast<std::uint64_t>(data.from);
    };
    data.width = distance(data.to) / buckets_max + 1;
    data.buckets.resize(distance(data.to) / data.width + 1);
    const auto number = [&](std::int64_t x) { return distance(x) / data.width; };
    // Mostly that of the point before: dividing takes longer than all else.
    std::uint64_t here = 0;
    const auto bucket_of = [&](std::int64_t x) -> SeriesBucket& {
      if (distance(x) - here * data.width >= data.width) here = number(x);
      return data.buckets[here];
    };
    each(
        data, [&](const SeriesPoint& point) { add(bucket_of(point.x), point); },
        [&](const PointSummary& summary) {
          const std::uint64_t bucket = number(summary.low[axis_]);
          if (bucket != number(summary.high[axis_])) return false;
          add(data.buckets[bucket], summary, axis_);
          return true;
        });
    for (std::size_t i = 0; i < data.buckets.size(); ++i) {
      data.buckets[i].begin =
          static_cast<std::int64_t>(static_cast<std::uint64_t>(data.from) + i * data.width);
    }
    std::erase_if(data.buckets, [](const SeriesBucket& bucket) { return bucket.count == 0; });
  }

  std::uint32_t job_;
  Series series_;
  std::size_t axis_;
  std::vector<SeriesPoint> head_;
  std::vector<Piece> pieces_;
  sqlite::Statement row_;
};

}  // namespace

SeriesData Store::series(std::uint32_t id, std::uint32_t run, const SeriesQuery& query) {
  const sqlite::Transaction reading(database_, sqlite::Does::read);
  SeriesData data = StoredSeries(database_, id, run, query).data(query);
  sqlite::Statement last(database_, "SELECT last_sequence FROM jobs WHERE id=?1");
  if (last.bind(std::int64_t{id}).step()) {
    data.next_sequence = static_cast<std::uint64_t>(last.integer(0)) + 1;
  }
  return data;
}

std::int64_t Store::points_of_series(std::uint32_t id, std::uint32_t run, Series series) {
  sqlite::Statement select(database_,
                           "SELECT first_index, data FROM point_summaries WHERE job=?1 AND run=?2"
                           " AND series=?3 ORDER BY first_index DESC LIMIT 1");
  if (select.bind(std::int64_t{id}, std::int64_t{run}, static_cast<std::int64_t>(series)).step()) {
    return select.integer(0) + static_cast<std::int64_t>(decode_summary(select.blob(1)).count);
  }
  std::int64_t count = 0;
  each_head_point(database_, id, run, [&](const Point& point, std::int64_t) {
    if (point.series == series) ++count;
  });
  return count;
}

void Store::drop_summaries(std::uint32_t id, std::uint32_t run, std::int64_t sequence,
                           std::span<const Event> points) {
  std::set<Series> series;
  for (const Event& event : points) series.insert(std::get<Point>(event.what).series);
  // The last of its series, so the greatest first_index: found without looking at the others.
  sqlite::Statement drop(database_,
                         "DELETE FROM point_summaries WHERE job=?1 AND run=?2 AND series=?3 AND"
                         " sequence=?4 AND first_index=(SELECT MAX(first_index) FROM"
                         " point_summaries WHERE job=?1 AND run=?2 AND series=?3)");
  for (const Series one : series) {
    drop.bind(std::int64_t{id}, std::int64_t{run}, static_cast<std::int64_t>(one), sequence).run();
  }
}

/// Of a store that an earlier version wrote.
void Store::summarize_all() {
  database_.execute("DELETE FROM point_summaries");
  sqlite::Statement select(database_,
                           "SELECT job, run, last_sequence, data FROM events WHERE kind=?1"
                           " ORDER BY job, run, last_sequence");
  select.bind(static_cast<std::int64_t>(EventKind::point));
  std::pair<std::int64_t, std::int64_t> before{-1, -1};
  std::uint64_t stored = 0;
  while (select.step()) {
    const std::pair run{select.integer(0), select.integer(1)};
    if (std::exchange(before, run) != run) stored = 0;
    add_summaries(static_cast<std::uint32_t>(run.first), static_cast<std::uint32_t>(run.second),
                  stored, select.integer(2), select.blob(3));
    PointReader points(select.blob(3));
    while (points.next()) ++stored;
  }
}

void Store::add_summaries(std::uint32_t id, std::uint32_t run, std::uint64_t first_point,
                          std::int64_t sequence, std::string_view blob) {
  if (first_point < head_points) return;
  std::map<Series, PointSummary> summaries;
  PointReader points(blob);
  while (points.next()) {
    const Point& point = points.point();
    PointSummary& summary = summaries[point.series];
    const std::int64_t index =
        summary.count == 0 ? points_of_series(id, run, point.series) : summary.last.place[3] + 1;
    summary.add(placed_value(point, index, points.time_unix_ms()));
  }
  sqlite::Statement insert(database_,
                           "INSERT INTO point_summaries(job, run, series, first_index, sequence,"
                           " data) VALUES(?1, ?2, ?3, ?4, ?5, ?6)");
  for (const auto& [series, summary] : summaries) {
    const std::string data = encode_summary(summary);
    insert
        .bind(std::int64_t{id}, std::int64_t{run}, static_cast<std::int64_t>(series),
              summary.first.place[3], sequence, sqlite::Blob{data})
        .run();
  }
}

}  // namespace pipewright
