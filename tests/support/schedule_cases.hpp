// Parameters to try every schedule of the registry with: odd and degenerate sizes among them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/schedule/kind.hpp"
#include "proto/codec/job_file.hpp"

namespace pipewright {

struct ScheduleCase {
  std::string kind;
  Value parameters;
};

/// `text` is YAML, as in a job file.
inline Value parameters_from(const std::string& text) {
  JobFile file = JobFile::parse(text, "test");
  return file.tree();
}

/// The cases of one kind; none for a kind that has no entry yet: a new schedule needs a line here.
inline std::vector<ScheduleCase> cases_of(const std::string& kind) {
  const auto with = [&](std::initializer_list<const char*> texts) {
    std::vector<ScheduleCase> cases;
    for (const char* text : texts) cases.push_back({kind, parameters_from(text)});
    return cases;
  };
  if (kind == "pipedream") {
    return with({"{stages: 1, microbatches: 1}", "{stages: 1, microbatches: 9}",
                 "{stages: 7, microbatches: 3}", "{stages: 5, microbatches: 40, in_flight_max: 1}",
                 "{stages: 4, microbatches: 33, in_flight_max: 11}",
                 "{stages: 3, microbatches: 20, order: strict}",
                 "{stages: 6, microbatches: 31, order: strict, warm_up: 2}",
                 "{stages: 4, microbatches: 2, order: strict}",
                 "{stages: 3, microbatches: 17, order: strict, warm_up: [5, 1, 0]}"});
  }
  if (kind == "rpd") {
    return with({"{stages: 1, updates: 10, delay_max: 3}", "{stages: 5, updates: 1, delay_max: 0}",
                 "{stages: 4, updates: 120, delay_max: 14}",
                 "{stages: 3, updates: 90, delay_max: 30, delays: max, in_flight_max: 9}",
                 "{stages: 4, updates: 50, delay_max: 40, delays: max, in_flight_max: 1}",
                 "{stages: 6, updates: 100, delays: zero}",
                 "{stages: 5, updates: 100, delays: zero, in_flight_max: 1}",
                 "{stages: 4, updates: 90, delays: pipedream}",
                 "{stages: 3, updates: 60, delay_max: 5, sampling: {stage: cyclic, batch: cyclic}}",
                 "{stages: 3, updates: 60, delay_max: 9, sampling: {stage: pipedream}}",
                 "{stages: 4, updates: 70, delays: pipedream, sampling: {batch: uniform}}"});
  }
  if (kind == "local_sgd") {
    return with({"{stages: 1, replicas: 1, local_steps: 1, microbatches: 1}",
                 "{stages: 1, replicas: 5, local_steps: 2, microbatches: 23}",
                 "{stages: 4, replicas: 1, local_steps: 3, microbatches: 7}",
                 "{stages: 5, replicas: 3, local_steps: 1, microbatches: 17}",
                 "{stages: 2, replicas: 7, local_steps: 2, microbatches: 40}",
                 "{stages: 3, replicas: 3, local_steps: 4, microbatches: 5}",
                 "{stages: 3, replicas: 4, local_steps: 2, microbatches: 30, placement: spread}",
                 "{stages: 1, replicas: 3, local_steps: 2, microbatches: 13, placement: spread}",
                 "{stages: 4, replicas: 2, local_steps: 3, microbatches: 29,"
                 " outer: {nesterov: {learning_rate: 0.7}}}",
                 "{stages: 3, replicas: 2, local_steps: 2, microbatches: 25, placement: spread,"
                 " outer: {sgd: {learning_rate: 0.5, momentum: 0.5}}}"});
  }
  if (kind == "fill_drain" || kind == "one_f_one_b") {
    return with({"{stages: 1, microbatches: 1}", "{stages: 4, microbatches: 9}",
                 "{stages: 3, microbatches: 10, accumulate: 4}",
                 "{stages: 5, microbatches: 7, accumulate: 1}",
                 "{stages: 6, microbatches: 4, accumulate: 2}"});
  }
  if (kind == "sequential") {
    return with({"{stages: 1, microbatches: 1}", "{stages: 5, microbatches: 11}"});
  }
  return {};
}

/// Every case of every kind but `file`, which is tested with the schedules of all others.
inline std::vector<ScheduleCase> all_schedule_cases() {
  std::vector<ScheduleCase> all;
  for (const ScheduleKind& kind : ScheduleRegistry::instance().all()) {
    if (kind.kind == "file") continue;
    const auto cases = cases_of(kind.kind);
    EXPECT_FALSE(cases.empty()) << "tests/support/schedule_cases.hpp has no case of '" << kind.kind
                                << "'";
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

/// A small quadratic with a schedule.
inline Value job_with(const ScheduleCase& one) {
  Value job = parameters_from(
      "{objective: {quadratic: {generate: {kind: random, examples: 61, parameters: 23}, "
      "batch_size: 5}},"
      " optimizer: {sgd: {learning_rate: 0.02, momentum: 0.3}},"
      " observe: {objective: {every_ticks: 1}}}");
  job.set("schedule", Value(Value::Map{{one.kind, one.parameters}}));
  return job;
}

inline std::string name_of(const ScheduleCase& one) {
  return one.kind + " " + to_json(one.parameters, -1);
}

}  // namespace pipewright
