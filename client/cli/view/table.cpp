#include "client/cli/view/table.hpp"

#include <algorithm>
#include <numeric>

#include "client/cli/view/text.hpp"
#include "core/base/check.hpp"

namespace pipewright::cli {

namespace {

constexpr int gap = 2;
constexpr int shrunk_columns_min = 8;

std::vector<int> natural_widths(const std::vector<Column>& columns,
                                const std::vector<std::vector<std::string>>& rows) {
  std::vector<int> widths;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    int width = display_width(columns[c].title);
    for (const auto& row : rows) {
      PW_CHECK(row.size() == columns.size(), "a row of a table has " << row.size() << " cells");
      width = std::max(width, display_width(row[c]));
    }
    widths.push_back(width);
  }
  return widths;
}

void shrink(const std::vector<Column>& columns, std::vector<int>& widths, int columns_max) {
  const int gaps = gap * static_cast<int>(columns.size() - 1);
  int excess = std::accumulate(widths.begin(), widths.end(), gaps) - columns_max;
  for (std::size_t c = 0; c < columns.size() && excess > 0; ++c) {
    if (!columns[c].shrinks) continue;
    const int cut = std::clamp(excess, 0, std::max(0, widths[c] - shrunk_columns_min));
    widths[c] -= cut;
    excess -= cut;
  }
}

void append_row(std::string& out, const std::vector<Column>& columns,
                const std::vector<int>& widths, const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (c > 0) line.append(gap, ' ');
    const std::string cell = clip(cells[c], widths[c]);
    line +=
        columns[c].align == Align::left ? pad_right(cell, widths[c]) : pad_left(cell, widths[c]);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + '\n';
}

}  // namespace

std::string format_table(const std::vector<Column>& columns,
                         const std::vector<std::vector<std::string>>& rows, int columns_max) {
  std::vector<int> widths = natural_widths(columns, rows);
  if (columns_max > 0) shrink(columns, widths, columns_max);
  std::vector<std::string> titles;
  for (const Column& column : columns) titles.push_back(column.title);
  std::string out;
  append_row(out, columns, widths, titles);
  for (const auto& row : rows) append_row(out, columns, widths, row);
  return out;
}

}  // namespace pipewright::cli
