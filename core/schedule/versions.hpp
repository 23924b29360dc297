// Which weight version every F, B and U of a schedule sees, and from it staleness, delay and peak
// stash. No training is needed: the order of the actions says it all.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "core/base/ids.hpp"
#include "core/schedule/schedule.hpp"

namespace pipewright {

/// Counts of non-negative whole numbers, with their maximum and mean.
class Histogram {
 public:
  void add(std::int64_t value, std::int64_t times = 1);
  std::int64_t count() const { return count_; }
  std::int64_t max() const { return static_cast<std::int64_t>(counts_.size()) - 1; }  // -1: empty
  double mean() const;
  /// The least value that at least `share` of the counts do not exceed.
  std::int64_t quantile(double share) const;
  /// How often each of 0..max() was seen.
  const std::vector<std::int64_t>& counts() const { return counts_; }

 private:
  std::vector<std::int64_t> counts_;
  std::int64_t count_ = 0;
  std::int64_t sum_ = 0;
};

/// Start-up: the first half of the updates; steady: the rest (the paper looks at the second half).
struct TwoPhases {
  Histogram start_up;
  Histogram steady;
  std::int64_t max() const { return std::max(start_up.max(), steady.max()); }
};

struct StageVersions {
  TwoPhases staleness;                      // versions, per update of this stage
  std::int64_t stash_microbatches_max = 0;  // between their F and their B
  std::int64_t stash_versions_max = 0;      // distinct weight versions among these
};

/// What was seen at one update.
struct UpdateFacts {
  UpdateCount k;  // updates before this one
  Row row;
  Action action;
  std::int64_t staleness = 0;
  const std::vector<std::int64_t>* delays = nullptr;  // per stage; valid during the call
};

/// Takes the actions of a schedule in the global order (DESIGN.md section 4). Delays count updates
/// of the model that is read: of the same replica. RPD's updates are counted in the order of their
/// k.
class VersionTracker {
 public:
  explicit VersionTracker(const ScheduleHeader& header);

  /// Throws ConfigError for an action that cannot be (a B without its F).
  void add(Row row, const Action& action);
  /// Called on every update. Delays are computed for each.
  void on_update(std::function<void(const UpdateFacts&)> callback) {
    callback_ = std::move(callback);
  }

  UpdateCount updates() const { return UpdateCount(k_); }
  /// Version of the block of a row (of its replica) so far.
  WeightVersion version(Row row, Replica replica) const;
  /// Version that the last forward of a row has read.
  WeightVersion last_read(Row row) const {
    return WeightVersion(rows_[static_cast<std::size_t>(row.value)].last_read);
  }
  const std::vector<StageVersions>& stages() const { return stages_; }
  const TwoPhases& delay() const { return delay_; }

 private:
  struct Stashed {
    Microbatch microbatch;
    Replica replica;
    std::int64_t version;
  };
  static bool differ(const Stashed& a, const Stashed& b) {
    return a.version != b.version || a.replica != b.replica;
  }
  struct RowState {
    std::vector<std::int64_t> versions;  // per replica of the row
    std::int64_t last_read = 0;
    std::vector<Stashed> stash;         // between F and B
    std::int64_t stash_distinct = 0;    // entries of stash that differ from the one before
    std::vector<Stashed> contributing;  // between B and U
    // Of RPD: the updates of this block that a later forward may still be before, and how many were
    // before those; forwards done beyond the first that is not.
    std::deque<Microbatch> own_updates;
    std::int64_t older_updates = 0;
    Microbatch next_forward{0};
    std::vector<Microbatch> forwards_ahead;
  };
  /// What one microbatch on its way has read.
  struct Reads {
    Microbatch microbatch;
    std::vector<std::int64_t> counter;  // of its replica's updates, at each stage's read
    int updates_left = 0;               // 0: the slot is free
  };

  void forward(Row row, const Action& action);
  void backward(Row row, const Action& action);
  void update(Row row, const Action& action);
  std::int64_t& version_of(Row row, Replica replica);
  Reads& new_reads(Microbatch m, int updates);
  Reads& reads_of(Microbatch m);
  static void drop(RowState& state, std::vector<Stashed>::iterator at);
  std::int64_t version_read(Row row, const Action& action);
  void note_forward(RowState& state, Microbatch m);

  ScheduleHeader header_;
  std::int64_t k_ = 0;
  std::vector<std::int64_t> replica_k_;  // updates per replica
  std::vector<RowState> rows_;
  std::vector<StageVersions> stages_;
  TwoPhases delay_;
  std::vector<Reads> reads_;  // by microbatch modulo its size, which doubles when two meet
  std::vector<std::int64_t> delays_;
  std::function<void(const UpdateFacts&)> callback_;
};

}  // namespace pipewright
