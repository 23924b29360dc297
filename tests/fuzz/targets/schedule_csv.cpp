// Schedules in their text form: a valid one can be walked through and simulated.
#include <sstream>

#include "core/schedule/csv.hpp"
#include "core/schedule/validate.hpp"
#include "core/sim/timeline.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace pipewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::may_refuse([&] {
    std::istringstream in{std::string(fuzz::text_of(data, size))};
    const Schedule schedule = read_csv(in, "schedule.csv");
    std::ostringstream out;
    write_csv(out, schedule);
    std::istringstream again(out.str());
    std::ostringstream twice;
    write_csv(twice, read_csv(again, "again.csv"));
    fuzz::claim(out.str() == twice.str(), "what is written reads back");
    require_valid(schedule);
    std::size_t actions = 0;
    for (const auto& row : schedule.rows) actions += row.size();
    const Timeline timeline = simulate(schedule, CostModel{}, LinkModel{});
    fuzz::claim(timeline.entries.size() == actions, "a valid schedule ends");
  });
  return 0;
}
