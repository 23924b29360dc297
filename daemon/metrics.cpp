#include "daemon/metrics.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <map>

namespace pipewright {
namespace {

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;

constexpr JobState states[] = {JobState::queued,    JobState::starting, JobState::running,
                               JobState::succeeded, JobState::failed,   JobState::cancelled};

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  return out;
}

Counter& counter(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add({});
}

Gauge& gauge(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add({});
}

/// One member of a family for every state of `wanted`.
template <class Metric>
std::map<JobState, Metric*> by_state(prometheus::Family<Metric>& family, const char* label,
                                     bool only_final) {
  std::map<JobState, Metric*> members;
  for (const JobState state : states) {
    if (only_final && !is_final(state)) continue;
    members[state] = &family.Add({{label, lower(name_of(state))}});
  }
  return members;
}

}  // namespace

struct Metrics::Impl {
  prometheus::Registry registry;
  std::map<JobState, Gauge*> jobs = by_state(prometheus::BuildGauge()
                                                 .Name("pipewright_jobs")
                                                 .Help("Jobs in the store by state.")
                                                 .Register(registry),
                                             "state", false);
  std::map<JobState, Counter*> runs_ended = by_state(prometheus::BuildCounter()
                                                         .Name("pipewright_runs_ended_total")
                                                         .Help("Runs that ended, by outcome.")
                                                         .Register(registry),
                                                     "outcome", true);
  prometheus::Family<Gauge>& ranks = prometheus::BuildGauge()
                                         .Name("pipewright_ranks")
                                         .Help("Ranks of the attached pools by what they do.")
                                         .Register(registry);
  Gauge& ranks_idle = ranks.Add({{"state", "idle"}});
  Gauge& ranks_busy = ranks.Add({{"state", "busy"}});
  Gauge& pools = gauge(registry, "pipewright_pools", "Pools that are attached.");
  Gauge& streams = gauge(registry, "pipewright_streams", "Clients that follow a job.");
  Gauge& store_bytes =
      gauge(registry, "pipewright_store_bytes", "Bytes that the data base uses, without files.");
  Counter& points =
      counter(registry, "pipewright_points_total", "Points of curves that pools have sent.");
  Counter& dropped = counter(registry, "pipewright_streams_dropped_total",
                             "Clients that were cut off because they did not keep up.");
  Counter& refused = counter(registry, "pipewright_tokens_refused_total",
                             "Requests without the token, or with a wrong one.");
  Counter& commit_faults =
      counter(registry, "pipewright_commit_faults_total", "Commits that the store refused.");
  Histogram& wait =
      prometheus::BuildHistogram()
          .Name("pipewright_run_wait_seconds")
          .Help("From the acceptance of a job to the first start of a run of it.")
          .Register(registry)
          .Add({}, Histogram::BucketBoundaries{0.01, 0.1, 1, 10, 60, 600, 3600, 21600, 86400});
  Histogram& commit =
      prometheus::BuildHistogram()
          .Name("pipewright_commit_seconds")
          .Help("What a commit to the store takes.")
          .Register(registry)
          .Add({}, Histogram::BucketBoundaries{0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10});
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}
Metrics::~Metrics() = default;

void Metrics::run_waited(std::chrono::milliseconds time) {
  impl_->wait.Observe(std::chrono::duration<double>(time).count());
}
void Metrics::run_ended(JobState outcome) {
  impl_->runs_ended.at(outcome)->Increment();
}
void Metrics::points_stored(std::uint64_t count) {
  impl_->points.Increment(static_cast<double>(count));
}
void Metrics::committed(std::chrono::nanoseconds time) {
  impl_->commit.Observe(std::chrono::duration<double>(time).count());
}
void Metrics::commit_failed() {
  impl_->commit_faults.Increment();
}
void Metrics::stream_dropped() {
  impl_->dropped.Increment();
}
void Metrics::token_refused() {
  impl_->refused.Increment();
}

void Metrics::set_jobs(JobState state, std::int64_t count) {
  impl_->jobs.at(state)->Set(static_cast<double>(count));
}
void Metrics::set_pools(std::int64_t attached, std::int64_t ranks_idle, std::int64_t ranks_busy) {
  impl_->pools.Set(static_cast<double>(attached));
  impl_->ranks_idle.Set(static_cast<double>(ranks_idle));
  impl_->ranks_busy.Set(static_cast<double>(ranks_busy));
}
void Metrics::set_streams(std::int64_t count) {
  impl_->streams.Set(static_cast<double>(count));
}
void Metrics::set_store_bytes(std::int64_t bytes) {
  impl_->store_bytes.Set(static_cast<double>(bytes));
}

std::string Metrics::text() const {
  return prometheus::TextSerializer().Serialize(impl_->registry.Collect());
}

}  // namespace pipewright
