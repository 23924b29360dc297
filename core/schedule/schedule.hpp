// Schedules: per row an ordered list of actions, no time in it. A row is a stage, or a (replica,
// stage) where every replica has stages of its own ("spread").
//
// Long runs never hold a whole schedule in memory: a ScheduleSource gives each row's actions one
// after the other; a Schedule is one that is held.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/schedule/action.hpp"

namespace pipewright {

enum class Placement : std::uint8_t { colocated, spread };
std::string_view name_of(Placement placement);

/// The sizes that a schedule is for; the first line of its CSV form.
struct ScheduleHeader {
  std::string name;  // the kind that made it, "pipedream"
  int stages = 1;
  std::int64_t microbatches = 0;
  std::int64_t updates = 0;  // block updates in all
  int replicas = 1;
  Placement placement = Placement::colocated;
  std::int64_t local_steps = 0;  // per round, 0 without rounds
  bool one_block = false;        // a microbatch updates one block only (RPD), not one per stage
  std::int64_t delay_max = 0;    // how many updates an RPD read may lie back, 0 elsewhere
  /// RPD's microbatches that are under way at once, 0: no bound. An update elsewhere lets row 0 go
  /// on, which the order of its actions does not say.
  std::int64_t in_flight_max = 0;
  std::uint64_t seed = 0;

  int rows() const { return placement == Placement::spread ? stages * replicas : stages; }
  Row row_of(Stage stage, Replica replica) const {
    return Row(placement == Placement::spread ? replica.value * stages + stage.value : stage.value);
  }
  Row row_of(const Action& action) const { return row_of(action.stage, action.replica); }
  Stage stage_of(Row row) const { return Stage(row.value % stages); }
  /// How many replicas' blocks a row holds, and the first of them.
  int replicas_of_row() const { return placement == Placement::spread ? 1 : replicas; }
  Replica first_replica_of(Row row) const { return Replica(row.value / stages); }
  friend bool operator==(const ScheduleHeader&, const ScheduleHeader&) = default;
};

class ScheduleSource {
 public:
  virtual ~ScheduleSource() = default;
  virtual const ScheduleHeader& header() const = 0;
  /// The next action of a row, or nothing at its end. Rows may be asked in any order, but one that
  /// runs far ahead of the others makes a generator hold what it made for those.
  virtual std::optional<Action> next(Row row) = 0;
};

struct Schedule {
  ScheduleHeader header;
  std::vector<std::vector<Action>> rows;

  std::int64_t actions() const;
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// Gives a held schedule row by row.
class HeldSchedule : public ScheduleSource {
 public:
  explicit HeldSchedule(Schedule schedule)
      : schedule_(std::move(schedule)), at_(schedule_.rows.size()) {}
  const ScheduleHeader& header() const override { return schedule_.header; }
  std::optional<Action> next(Row row) override;

 private:
  Schedule schedule_;
  std::vector<std::size_t> at_;
};

/// All that is left of a source.
Schedule collect(ScheduleSource& source);

}  // namespace pipewright
