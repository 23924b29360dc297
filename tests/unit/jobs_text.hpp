// What the queue wants done, as short lines of text that tests compare.
#pragma once

#include <string>

#include "daemon/jobs/queue.hpp"

namespace pipewright::jobs {

inline std::string text_of(const RunId& run) {
  return std::to_string(run.job) + "." + std::to_string(run.run) + "/" +
         std::to_string(run.attempt);
}

inline std::string text_of(const Effect& effect) {
  const auto quoted = [](const std::string& text) {
    return text.empty() ? std::string() : " '" + text + "'";
  };
  const auto on = [](PoolId pool) { return " on pool " + std::to_string(pool.value); };
  if (const auto* job = std::get_if<StoreJob>(&effect)) {
    return "job " + std::to_string(job->job) + " " + std::string(name_of(job->state)) +
           " attempt " + std::to_string(job->attempt) + quoted(job->message);
  }
  if (const auto* run = std::get_if<StoreRun>(&effect)) {
    return "run " + text_of(RunId{run->job, run->run, run->attempt}) + " " +
           std::string(name_of(run->state)) + quoted(run->message);
  }
  if (const auto* asked = std::get_if<StoreCancelAsked>(&effect)) {
    return "cancel of job " + std::to_string(asked->job) + " asked";
  }
  if (const auto* start = std::get_if<StartOnPool>(&effect)) {
    std::string ranks;
    for (const std::uint32_t rank : start->ranks) ranks += " " + std::to_string(rank);
    return "start " + text_of(start->run) + on(start->pool) + ", ranks" + ranks;
  }
  if (const auto* cancel = std::get_if<CancelOnPool>(&effect)) {
    return "cancel " + text_of(cancel->run) + on(cancel->pool);
  }
  if (const auto* end = std::get_if<AcknowledgeEnd>(&effect)) {
    return "acknowledge " + text_of(end->run) + on(end->pool);
  }
  const auto& drop = std::get<DropPool>(effect);
  return "drop" + on(drop.pool) + quoted(drop.reason);
}

}  // namespace pipewright::jobs
