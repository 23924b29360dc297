// Finds what is wrong with a schedule before anything runs.
#pragma once

#include <string>
#include <vector>

#include "core/schedule/schedule.hpp"

namespace pipewright {

struct ScheduleFault {
  Row row;
  std::size_t position = 0;  // of the action in its row
  std::string message;
  std::string picture;  // the neighbourhood, the fault marked: "row 2: ... F3 F4 >B9< F5 ..."
};

/// Every fault of a schedule's rows: actions twice, a B without its F, a U without a B,
/// microbatches that are missing on some stage, that change replica or batch on their way, rounds
/// that not all rows have.
std::vector<ScheduleFault> validate(const Schedule& schedule);

/// Runs the schedule by its data dependencies alone. Empty when it ends; else the cycle of waiting,
/// in schedule words: "stage 0 waits at B1 for B1 of stage 1, which waits at F2 for F2 of stage 0".
std::string check_deadlock(const Schedule& schedule);

/// Throws ConfigError with the first faults (at most five, with their pictures), or with the
/// deadlock.
void require_valid(const Schedule& schedule);

}  // namespace pipewright
