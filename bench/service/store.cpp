#include "bench/service/store.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "daemon/store/journal.hpp"
#include "tests/service/support.hpp"

namespace pipewright::bench {
namespace {

constexpr std::int64_t begin_unix_ms = 1'700'000'000'000;

/// A loss per microbatch, and after every 10,000 the objective.
std::vector<Point> losses(std::uint64_t first, std::size_t count) {
  std::vector<Point> points;
  for (std::uint64_t i = first; i < first + count; ++i) {
    const auto n = static_cast<std::int64_t>(i);
    const double noise = static_cast<double>((i * 2654435761u) % 1000) / 1000;
    const double value = 3 / std::sqrt(1 + static_cast<double>(i) / 1000) + noise;
    if (i % 10'000 == 9'999) {
      points.push_back({Series::objective, 2 * n, n, 0, value});
    } else {
      points.push_back({Series::last_stage_loss, 2 * n, 0, n, value});
    }
  }
  return points;
}

class Writer {
 public:
  explicit Writer(const std::filesystem::path& database) : store_(database), journal_(store_) {}

  std::uint32_t add_job(const std::string& name, std::uint32_t runs) {
    Value job = test::small_job(1, name);
    if (runs > 1) job.set("repeats", static_cast<std::int64_t>(runs));
    return store_.add_job(job, 1, runs, begin_unix_ms);
  }
  std::vector<std::uint32_t> add_small_jobs(std::uint32_t count) {
    const std::vector<Store::NewJob> jobs(count, {test::small_job(1, "small"), 1, 1});
    return store_.add_jobs(jobs, begin_unix_ms);
  }
  void start_run(std::uint32_t job, std::uint32_t run) {
    journal_.add_run_state(state(job, run, JobState::running), "pool", begin_unix_ms);
  }
  void end_run(std::uint32_t job, std::uint32_t run) {
    jobs::StoreRun end = state(job, run, JobState::succeeded);
    end.summary_json = R"({"objective_last": 0.5, "tail": null, "stable": null})";
    journal_.add_run_state(end, "pool", begin_unix_ms);
  }
  void job_state(std::uint32_t job, JobState state, RunCounts counts) {
    journal_.add_job_state({job, state, {}, 1, counts, counts.total}, begin_unix_ms);
  }
  void points(std::uint32_t job, std::uint32_t run, std::uint64_t first, std::size_t count) {
    journal_.add_points({{job, run, 1}, first, losses(first, count)}, begin_unix_ms);
  }
  void commit() { journal_.commit(); }

 private:
  static jobs::StoreRun state(std::uint32_t job, std::uint32_t run, JobState state) {
    jobs::StoreRun change;
    change.job = job;
    change.run = run;
    change.state = state;
    change.attempt = 1;
    return change;
  }

  Store store_;
  Journal journal_;
};

}  // namespace

LargeStore fill_store(const std::filesystem::path& database, bool smoke) {
  const std::uint32_t part = smoke ? 100 : 1;
  LargeStore large{.long_points = 5'000'000 / part, .runs = 50'000 / part};
  constexpr std::size_t points_each = 50, batch = 1000;
  Writer writer(database);
  const std::vector<std::uint32_t> small = writer.add_small_jobs(large.runs);
  for (std::size_t i = 0; i < small.size(); ++i) {
    writer.start_run(small[i], 0);
    writer.points(small[i], 0, 0, points_each);
    writer.end_run(small[i], 0);
    writer.job_state(small[i], JobState::succeeded, {1, 0, 1, 0, 0});
    if (i % batch == batch - 1) writer.commit();
  }
  writer.commit();
  large.long_run = writer.add_job("long", 1);
  writer.start_run(large.long_run, 0);
  writer.job_state(large.long_run, JobState::running, {1, 1, 0, 0, 0});
  for (std::uint64_t first = 0; first < large.long_points; first += 5000) {
    writer.points(large.long_run, 0, first, 5000);
    writer.commit();
  }
  writer.end_run(large.long_run, 0);
  writer.job_state(large.long_run, JobState::succeeded, {1, 0, 1, 0, 0});
  writer.commit();
  large.many_runs = writer.add_job("many", large.runs);
  writer.job_state(large.many_runs, JobState::running, {large.runs, 1, 0, 0, 0});
  for (std::uint32_t run = 0; run < large.runs; ++run) {
    writer.start_run(large.many_runs, run);
    writer.points(large.many_runs, run, 0, points_each);
    writer.end_run(large.many_runs, run);
    if (run % batch == batch - 1) writer.commit();
  }
  writer.job_state(large.many_runs, JobState::succeeded, {large.runs, 0, large.runs, 0, 0});
  writer.commit();
  return large;
}

}  // namespace pipewright::bench
