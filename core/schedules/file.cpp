// A schedule from a file: one that a run has stored, or one made by hand (core/schedule/csv.hpp).
#include <fstream>

#include "core/schedule/csv.hpp"
#include "core/schedule/kind.hpp"
#include "core/schedule/schedule_file.hpp"
#include "core/schedule/sync_parameters.hpp"
#include "core/schedule/validate.hpp"

namespace pipewright {
namespace {

ScheduleHeader header_from(const Value& parameters, std::uint64_t) {
  const std::string& path = parameters.at("path").as_text();
  return read_csv_header(*open_schedule_file(path), path);
}

std::unique_ptr<ScheduleSource> make(const Value& parameters, const ScheduleContext& context) {
  const std::string& path = parameters.at("path").as_text();
  if (context.shuffle) {
    throw ParamError("path", "the file gives every batch; leave out `shuffle`");
  }
  Schedule schedule = read_csv(*open_schedule_file(path), path);
  try {
    require_valid(schedule);
  } catch (const ConfigError& error) {
    throw DataError(path + ": " + error.what());
  }
  // A schedule that was planned without data numbers its batches on and on.
  for (auto& row : schedule.rows) {
    for (Action& action : row) {
      if (context.batches > 0) action.batch.value %= context.batches;
    }
  }
  return std::make_unique<HeldSchedule>(std::move(schedule));
}

const Registration<ScheduleKind> registration{
    {.kind = "file",
     .summary = "A schedule from a file, in the form of a run's schedule.csv.",
     .parameters = {ParamSpec::path_of("path", "The file.").needed(), sync_parameter(),
                    outer_parameter()},
     .header = header_from,
     .make = make}};

}  // namespace
}  // namespace pipewright
