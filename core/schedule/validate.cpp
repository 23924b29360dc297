#include "core/schedule/validate.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/base/error.hpp"

namespace pipewright {

namespace {

std::string picture_of(const std::vector<Action>& row, std::size_t at, bool with_replica) {
  static constexpr std::size_t reach = 4;
  const std::size_t first = at > reach ? at - reach : 0;
  const std::size_t last = std::min(row.size(), at + reach + 1);
  std::string text = first > 0 ? "... " : "";
  for (std::size_t i = first; i < last; ++i) {
    const std::string label = row[i].label(with_replica);
    text += (i > first ? " " : "") + (i == at ? ">" + label + "<" : label);
  }
  return text + (last < row.size() ? " ..." : "");
}

class Validator {
 public:
  explicit Validator(const Schedule& schedule) : schedule_(schedule) {}

  std::vector<ScheduleFault> run() {
    const int rows = schedule_.header.rows();
    if (schedule_.rows.size() != static_cast<std::size_t>(rows)) {
      faults_.push_back({Row(0), 0,
                         "the schedule has " + std::to_string(schedule_.rows.size()) +
                             " rows where its header says " + std::to_string(rows),
                         ""});
      return std::move(faults_);
    }
    for (int r = 0; r < rows; ++r) check_row(Row(r));
    for (int r = 0; r < rows; ++r) check_against_neighbours(Row(r));
    return std::move(faults_);
  }

 private:
  struct Route {
    Replica replica;
    Batch batch;
  };

  const std::vector<Action>& row(Row r) const {
    return schedule_.rows[static_cast<std::size_t>(r.value)];
  }

  void fault(Row r, std::size_t at, const std::string& message) {
    faults_.push_back({r, at, message,
                       "row " + std::to_string(r.value) + ": " +
                           picture_of(row(r), at, schedule_.header.replicas > 1)});
  }

  void check_row(Row r) {
    std::unordered_set<std::int64_t> forwards, backwards, updates;
    std::unordered_map<std::int32_t, std::int64_t> backwards_since_update;
    std::int64_t round = 0;
    for (std::size_t i = 0; i < row(r).size(); ++i) {
      const Action& action = row(r)[i];
      const std::int64_t m = action.microbatch.value;
      switch (action.kind) {
        case ActionKind::forward:
          if (!forwards.insert(m).second) fault(r, i, action.label() + " is there twice");
          check_route(r, i, action);
          break;
        case ActionKind::backward:
          if (!backwards.insert(m).second) fault(r, i, action.label() + " is there twice");
          if (!forwards.contains(m)) {
            fault(r, i, action.label() + " has no F" + std::to_string(m) + " before it");
          }
          check_route(r, i, action);
          ++backwards_since_update[action.replica.value];
          break;
        case ActionKind::update:
          if (schedule_.header.one_block) {
            if (!backwards.contains(m))
              fault(r, i, action.label() + " has no B of its own before it");
            if (!updates.insert(m).second) fault(r, i, action.label() + " is there twice");
          } else if (std::exchange(backwards_since_update[action.replica.value], 0) == 0) {
            fault(r, i, action.label() + " has no B since the update before it");
          }
          break;
        case ActionKind::sync:
          if (m != round) {
            fault(r, i,
                  action.label() + " should be SYNC" + std::to_string(round) +
                      ": rounds count from 0");
          }
          ++round;
          break;
      }
    }
  }

  /// A microbatch keeps its replica and batch on its way.
  void check_route(Row r, std::size_t i, const Action& action) {
    const auto [at, is_new] =
        routes_.emplace(action.microbatch.value, Route{action.replica, action.batch});
    if (is_new) return;
    if (at->second.replica != action.replica) {
      fault(r, i,
            action.label() + " is of replica " + std::to_string(action.replica.value) +
                ", elsewhere of replica " + std::to_string(at->second.replica.value));
    }
    if (at->second.batch != action.batch) {
      fault(r, i,
            action.label() + " has batch " + std::to_string(action.batch.value) +
                ", elsewhere batch " + std::to_string(at->second.batch.value));
    }
  }

  static std::set<Microbatch> microbatches(const std::vector<Action>& row, ActionKind kind) {
    std::set<Microbatch> found;
    for (const Action& action : row) {
      if (action.kind == kind) found.insert(action.microbatch);
    }
    return found;
  }

  /// What a row uses, its neighbours must make, and the other way round.
  void check_against_neighbours(Row r) {
    const Stage stage = schedule_.header.stage_of(r);
    if (stage.value == 0) return;
    const Row before(r.value - 1);
    same_microbatches(r, before, ActionKind::forward);
    if (!schedule_.header.one_block) return same_microbatches(r, before, ActionKind::backward);
    // An RPD microbatch goes back to the stage that it updates and no further.
    const auto backwards_here = microbatches(row(r), ActionKind::backward);
    for (std::size_t i = 0; i < row(before).size(); ++i) {
      const Action& action = row(before)[i];
      if (action.kind == ActionKind::backward && !backwards_here.contains(action.microbatch)) {
        fault(before, i,
              "row " + std::to_string(r.value) + " has no " + action.label() + " to come from");
      }
    }
  }

  void same_microbatches(Row r, Row before, ActionKind kind) {
    const auto made = microbatches(row(before), kind);
    for (std::size_t i = 0; i < row(r).size(); ++i) {
      const Action& action = row(r)[i];
      if (action.kind == kind && !made.contains(action.microbatch)) {
        fault(r, i, "row " + std::to_string(before.value) + " has no " + action.label());
      }
    }
    const auto used = microbatches(row(r), kind);
    for (std::size_t i = 0; i < row(before).size(); ++i) {
      const Action& action = row(before)[i];
      if (action.kind == kind && !used.contains(action.microbatch)) {
        fault(before, i, "row " + std::to_string(r.value) + " has no " + action.label());
      }
    }
  }

  const Schedule& schedule_;
  std::unordered_map<std::int64_t, Route> routes_;
  std::vector<ScheduleFault> faults_;
};

/// Runs rows by data dependencies, without time.
class DryRun {
 public:
  explicit DryRun(const Schedule& schedule)
      : schedule_(schedule), at_(schedule.rows.size()), done_(schedule.rows.size()) {}

  /// The rows that cannot go on.
  std::vector<std::size_t> run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t r = 0; r < at_.size(); ++r) {
        while (at_[r] < schedule_.rows[r].size() && !waits_for(r)) {
          const Action& action = current(r);
          done_[r].insert(key(action));
          ++at_[r];
          moved = true;
        }
      }
    }
    std::vector<std::size_t> stuck;
    for (std::size_t r = 0; r < at_.size(); ++r) {
      if (at_[r] < schedule_.rows[r].size()) stuck.push_back(r);
    }
    return stuck;
  }

  struct Wait {
    std::size_t row;
    Action action;
  };

  /// What the next action of a row waits for, or nothing when it can run.
  std::optional<Wait> waits_for(std::size_t r) const {
    const Action& action = current(r);
    const int stage = action.stage.value;
    if (action.kind == ActionKind::forward && stage > 0) return missing(r - 1, action);
    if (action.kind == ActionKind::backward && stage + 1 < schedule_.header.stages) {
      return missing(r + 1, action);
    }
    if (action.kind == ActionKind::sync) {
      for (std::size_t other = 0; other < at_.size(); ++other) {
        if (done_[other].contains(key(action))) continue;
        const bool is_there = at_[other] < schedule_.rows[other].size() &&
                              current(other).kind == ActionKind::sync &&
                              current(other).microbatch == action.microbatch;
        if (!is_there) return Wait{other, action};
      }
    }
    return std::nullopt;
  }

  const Action& current(std::size_t r) const { return schedule_.rows[r][at_[r]]; }

 private:
  static std::pair<ActionKind, std::int64_t> key(const Action& action) {
    return {action.kind, action.microbatch.value};
  }

  std::optional<Wait> missing(std::size_t row, const Action& action) const {
    if (done_[row].contains(key(action))) return std::nullopt;
    return Wait{row, action};
  }

  const Schedule& schedule_;
  std::vector<std::size_t> at_;
  std::vector<std::set<std::pair<ActionKind, std::int64_t>>> done_;
};

}  // namespace

std::vector<ScheduleFault> validate(const Schedule& schedule) {
  return Validator(schedule).run();
}

std::string check_deadlock(const Schedule& schedule) {
  DryRun dry_run(schedule);
  const auto stuck = dry_run.run();
  if (stuck.empty()) return "";
  // Follow who waits for whom until a row comes again: from there on it is the cycle.
  std::vector<std::size_t> path;
  std::size_t row = stuck.front();
  while (std::find(path.begin(), path.end(), row) == path.end()) {
    path.push_back(row);
    const auto wait = dry_run.waits_for(row);
    if (!wait || std::find(stuck.begin(), stuck.end(), wait->row) == stuck.end()) break;
    row = wait->row;
  }
  path.erase(path.begin(), std::find(path.begin(), path.end(), row));
  std::string text;
  for (const std::size_t r : path) {
    const auto wait = dry_run.waits_for(r);
    text += (text.empty() ? "row " + std::to_string(r) + " waits at " : ",\n  which waits at ") +
            dry_run.current(r).label();
    if (wait) text += " for " + wait->action.label() + " of row " + std::to_string(wait->row);
  }
  return text;
}

void require_valid(const Schedule& schedule) {
  const auto faults = validate(schedule);
  if (!faults.empty()) {
    std::string text = "the schedule has " + std::to_string(faults.size()) +
                       (faults.size() == 1 ? " fault:" : " faults:");
    for (std::size_t i = 0; i < std::min<std::size_t>(faults.size(), 5); ++i) {
      text += "\n  row " + std::to_string(faults[i].row.value) + ", position " +
              std::to_string(faults[i].position) + ": " + faults[i].message;
      if (!faults[i].picture.empty()) text += "\n    " + faults[i].picture;
    }
    throw ConfigError(text);
  }
  if (const std::string cycle = check_deadlock(schedule); !cycle.empty()) {
    throw ConfigError("the schedule deadlocks: " + cycle);
  }
}

}  // namespace pipewright
