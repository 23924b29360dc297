// Tables of text for terminals and pipes.
#pragma once

#include <string>
#include <vector>

namespace pipewright::cli {

enum class Align { left, right };

struct Column {
  std::string title;
  Align align = Align::left;
  bool shrinks = false;  // clipped with "…" when the table is wider than the terminal
};

/// One line per row below the titles, columns two spaces apart, no trailing spaces. Rows have as
/// many cells as there are columns. `columns_max` 0: no limit. Ends in a newline.
std::string format_table(const std::vector<Column>& columns,
                         const std::vector<std::vector<std::string>>& rows, int columns_max = 0);

}  // namespace pipewright::cli
