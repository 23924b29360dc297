// How Service takes jobs: those that come at about the same time share a commit.

#include <algorithm>
#include <iterator>

#include "core/train/stored_job.hpp"
#include "daemon/clock.hpp"
#include "daemon/jobs/ranks.hpp"
#include "daemon/log.hpp"
#include "daemon/service.hpp"

namespace pipewright {

Store::NewJob Service::prepare(Value checked, Submission by) {
  const JobRuns runs(checked);
  return {std::move(checked), ranks_wanted(runs), runs.size(), std::move(by)};
}

void Service::submit(Store::NewJob job, OnSubmitted done) {
  submissions_.push_back({std::move(job), std::move(done)});
  wake_for_news_();
}

/// The job that was submitted with this key before.
std::optional<Service::Submitted> Service::known(const Store::NewJob& job) {
  if (job.by.idempotency_key.empty()) return std::nullopt;
  const std::optional<JobId> id = store_.find_key(job.by);
  if (!id) return std::nullopt;
  if (restored_job(store_.spec(*id).value_or(Value())) != restored_job(job.spec)) {
    throw KeyTaken("the idempotency key '" + job.by.idempotency_key + "' is that of job " +
                   std::to_string(*id) + ", which is another job than this one");
  }
  return Submitted{*id, false};
}

void Service::take_submissions() {
  while (!submissions_.empty()) take(next_submissions());
}

/// Those that wait, up to one that has the key of another: it may be the same job.
std::vector<Service::Waiting> Service::next_submissions() {
  std::set<std::pair<std::string, std::string>> keys;
  const auto repeats_a_key = [&](const Waiting& waiting) {
    const Submission& by = waiting.job.by;
    return !by.idempotency_key.empty() && !keys.emplace(by.user, by.idempotency_key).second;
  };
  const auto end = std::find_if(submissions_.begin(), submissions_.end(), repeats_a_key);
  std::vector<Waiting> batch(std::make_move_iterator(submissions_.begin()),
                             std::make_move_iterator(end));
  submissions_.erase(submissions_.begin(), end);
  return batch;
}

/// Whatever happens, each is answered, and none is taken twice.
void Service::take(std::vector<Waiting> batch) {
  std::vector<SubmitResult> results;
  std::vector<Store::NewJob> fresh;
  std::vector<std::size_t> places;  // of these among the results
  for (Waiting& waiting : batch) {
    try {
      const std::optional<Submitted> earlier = known(waiting.job);
      if (!earlier && fresh.size() >= queue_.room()) {
        throw QueueFull(std::to_string(limits_.queue.jobs_max) +
                        " jobs have not ended; no more are taken until some have");
      }
      results.emplace_back(earlier.value_or(Submitted{}));
      if (earlier) continue;
      places.push_back(results.size() - 1);
      fresh.push_back(std::move(waiting.job));
    } catch (const std::exception&) {
      results.emplace_back(std::current_exception());
    }
  }
  std::vector<JobId> ids;
  try {
    ids = store_.add_jobs(fresh, unix_ms());
    for (std::size_t i = 0; i < ids.size(); ++i) results[places[i]] = Submitted{ids[i], true};
  } catch (const std::exception&) {
    for (const std::size_t place : places) results[place] = std::current_exception();
  }
  for (std::size_t i = 0; i < batch.size(); ++i) batch[i].done(results[i]);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Store::NewJob& job = fresh[i];
    log_info(
        "job accepted",
        {{"job", ids[i]}, {"runs", job.runs}, {"ranks", job.ranks_wanted}, {"user", job.by.user}});
    const auto priority = static_cast<int>(job.spec.at("priority").as_integer());
    handle(jobs::JobAccepted{ids[i], job.ranks_wanted, job.runs, job.by.user, priority});
  }
}

}  // namespace pipewright
