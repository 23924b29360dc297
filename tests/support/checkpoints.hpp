// Checkpoints in memory, and runs that are killed after some of them.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/train/run.hpp"

namespace pipewright {

/// What a run is killed by.
struct Killed : std::runtime_error {
  Killed() : std::runtime_error("killed") {}
};

class MemoryCheckpoints : public CheckpointStore {
 public:
  /// After so many complete ones; 0: never.
  explicit MemoryCheckpoints(int kill_after = 0) : kill_after_(kill_after) {}

  void put_row(Tick tick, Row row, std::string_view state) override {
    parts_[tick][row] = std::string(state);
  }
  void put_values(Tick tick, std::string_view values) override {
    values_[tick] = std::string(values);
  }
  void complete(Tick tick) override {
    completed_.push_back(tick);
    if (--kill_after_ == 0) throw Killed();
  }

  std::optional<Tick> resume_from() const override {
    return completed_.empty() || !resumes_ ? std::nullopt : std::optional(completed_.back());
  }
  std::string row(Row row) const override { return parts_.at(completed_.back()).at(row); }
  std::optional<std::string> next_values() override {
    if (next_values_ >= values_given_) return std::nullopt;
    return values_.at(completed_[next_values_++]);
  }

  /// For another attempt, which is killed after so many more.
  void resume(int kill_after) {
    kill_after_ = kill_after;
    resumes_ = !completed_.empty();
    next_values_ = 0;
    values_given_ = completed_.size();
  }
  /// Complete ones, of all attempts.
  const std::vector<Tick>& completed() const { return completed_; }
  std::map<Tick, std::map<Row, std::string>>& parts() { return parts_; }

 private:
  int kill_after_;
  bool resumes_ = false;
  std::size_t next_values_ = 0, values_given_ = 0;
  std::vector<Tick> completed_;
  std::map<Tick, std::map<Row, std::string>> parts_;
  std::map<Tick, std::string> values_;
};

}  // namespace pipewright
