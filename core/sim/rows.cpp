#include "core/sim/rows.hpp"

#include <algorithm>
#include <numeric>

#include "core/base/error.hpp"

namespace pipewright {

std::vector<std::string> rows_of(const Timeline& timeline) {
  static constexpr std::int64_t columns_max = 10'000;
  std::int64_t unit = 0;
  std::int64_t makespan = 0;
  for (const TimelineEntry& entry : timeline.entries) {
    unit = std::gcd(std::gcd(unit, entry.start.value), entry.end.value);
    makespan = std::max(makespan, entry.end.value);
  }
  unit = std::max<std::int64_t>(unit, 1);
  const std::int64_t columns = makespan / unit;
  if (columns > columns_max) {
    throw ConfigError("the plan is " + std::to_string(columns) +
                      " columns wide; rows show at most " + std::to_string(columns_max) +
                      " (try --format summary, csv or json)");
  }
  std::vector<std::vector<std::string>> cells(
      static_cast<std::size_t>(timeline.header.rows()),
      std::vector<std::string>(static_cast<std::size_t>(columns), "."));
  for (const TimelineEntry& entry : timeline.entries) {
    const ActionKind kind = entry.action.kind;
    if (kind != ActionKind::forward && kind != ActionKind::backward) continue;
    auto& row = cells[static_cast<std::size_t>(entry.row.value)];
    for (std::int64_t t = entry.start.value / unit; t < entry.end.value / unit; ++t) {
      row[static_cast<std::size_t>(t)] = entry.action.label();
    }
  }
  std::vector<std::string> rows;
  for (const auto& row : cells) {
    std::string text;
    for (std::size_t t = 0; t < row.size(); ++t) text += (t > 0 ? " " : "") + row[t];
    rows.push_back(std::move(text));
  }
  return rows;
}

}  // namespace pipewright
