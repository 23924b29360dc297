// What the daemon counts, in the form that Prometheus reads. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "proto/codec/api.hpp"

namespace pipewright {

class Metrics {
 public:
  Metrics();
  ~Metrics();

  // As they happen.
  /// A run was started for the first time so long after its job was accepted.
  void run_waited(std::chrono::milliseconds time);
  void run_ended(JobState outcome);
  void points_stored(std::uint64_t count);
  void committed(std::chrono::nanoseconds time);
  void commit_failed();
  void stream_dropped();
  void token_refused();

  // As they are when somebody asks.
  void set_jobs(JobState state, std::int64_t count);
  void set_pools(std::int64_t attached, std::int64_t ranks_idle, std::int64_t ranks_busy);
  void set_streams(std::int64_t count);
  void set_store_bytes(std::int64_t bytes);

  /// The text exposition format, version 0.0.4.
  std::string text() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pipewright
