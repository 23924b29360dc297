// The golden language model (lm_tiny) as a job.
#pragma once

#include <string>

#include "core/base/value.hpp"
#include "tests/support/shared.hpp"

namespace pipewright {

inline Value lm_tiny_parameters() {
  Value parameters = Value::map();
  set_path(parameters, "data.tokens_npy", shared_path("golden/lm_tokens.npy"));
  parameters.set("batch_size", 4);
  parameters.set("sequence_length", 16);
  parameters.set("embedding", 32);
  parameters.set("heads", 2);
  return parameters;
}

/// 96 microbatches, four stages, learning rate 0.125, from the golden weights; the full objective
/// about ten times.
inline Value lm_tiny_job(const std::string& schedule, int replicas = 0, int local_steps = 0) {
  Value job = Value::map();
  set_path(job, "objective.transformer", lm_tiny_parameters());
  Value files = Value::list();
  for (int s = 0; s < 4; ++s) {
    files.as_list().push_back(shared_path("golden/lm_stage" + std::to_string(s) + "_init.npy"));
  }
  set_path(job, "init.npy", std::move(files));
  const std::string path = "schedule." + schedule;
  set_path(job, path + ".stages", 4);
  set_path(job, path + ".microbatches", 96);
  if (replicas > 0) {
    set_path(job, path + ".replicas", replicas);
    set_path(job, path + ".local_steps", local_steps);
  }
  set_path(job, "optimizer.sgd.learning_rate", 0.125);
  set_path(job, "observe.objective.every_ticks", 20);
  return job;
}

}  // namespace pipewright
