// The text form of a schedule (DESIGN.md section 3). First a line
//   # pipewright schedule version=1 name=pipedream stages=4 microbatches=8 updates=32 replicas=1
//   ... seed=0
// then one action per line, `stage,kind,microbatch,replica,batch,read_update`, each row's in their
// order (rows may be mixed); read_update is empty unless an RPD forward reads old weights.
#pragma once

#include <istream>
#include <ostream>
#include <string>

#include "core/schedule/schedule.hpp"

namespace pipewright {

/// The first line, without its end.
std::string csv_header(const ScheduleHeader& header);
/// Appends one action and a line end.
void append_csv(std::string& out, const Action& action);
void write_csv(std::ostream& out, const Schedule& schedule);

/// Throws DataError "NAME:LINE: ..." for anything that is not such a text. The result still has to
/// be validated (validate.hpp).
Schedule read_csv(std::istream& in, const std::string& name);
/// Its first line alone.
ScheduleHeader read_csv_header(std::istream& in, const std::string& name);

}  // namespace pipewright
