#include "client/cli/figure/number_table.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace pipewright::cli {

namespace {

class Lines {
 public:
  explicit Lines(const std::string& path) : path_(path), in_(path) {
    if (!in_) throw DataError(path + ": cannot be read");
  }
  /// The next line that is neither empty nor begins with '#'; false at the end.
  bool next(std::string& line) {
    while (std::getline(in_, line)) {
      ++number_;
      if (line.ends_with('\r')) line.pop_back();
      if (!line.empty() && line.front() != '#') return true;
    }
    return false;
  }
  std::string where() const { return path_ + ":" + std::to_string(number_) + ": "; }

 private:
  std::string path_;
  std::ifstream in_;
  std::size_t number_ = 0;
};

std::vector<std::string> names_of(Lines& lines, const std::string& path) {
  std::string line;
  if (!lines.next(line)) throw DataError(path + ": it is empty, expected a line of column names");
  std::vector<std::string> names;
  for (const std::string_view name : split(line, ',')) names.emplace_back(trim(name));
  return names;
}

double number_in(std::string_view cell, const std::string& where, const std::string& column) {
  cell = trim(cell);
  if (cell.empty() || cell == "nan" || cell == "null") {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (cell == "inf") return std::numeric_limits<double>::infinity();
  if (cell == "-inf") return -std::numeric_limits<double>::infinity();
  const std::optional<double> value = parse_real(cell);
  if (!value) {
    throw DataError(where + "'" + std::string(cell) + "' in column " + column + " is no number");
  }
  return *value;
}

}  // namespace

std::vector<std::string> column_names(const std::string& path) {
  Lines lines(path);
  return names_of(lines, path);
}

std::vector<std::vector<double>> read_columns(const std::string& path,
                                              std::span<const std::string> names) {
  Lines lines(path);
  const std::vector<std::string> all = names_of(lines, path);
  std::vector<std::size_t> places;
  for (const std::string& name : names) {
    const auto at = std::find(all.begin(), all.end(), name);
    if (at == all.end()) {
      throw ConfigError(path + " has no column '" + name + "'" + suggest(name, all));
    }
    places.push_back(static_cast<std::size_t>(at - all.begin()));
  }
  std::vector<std::vector<double>> columns(names.size());
  for (std::string line; lines.next(line);) {
    const std::vector<std::string_view> cells = split(line, ',');
    if (cells.size() != all.size()) {
      throw DataError(lines.where() + std::to_string(cells.size()) + " cells, expected " +
                      std::to_string(all.size()) + " as in the line of names");
    }
    for (std::size_t c = 0; c < places.size(); ++c) {
      columns[c].push_back(number_in(cells[places[c]], lines.where(), names[c]));
    }
  }
  return columns;
}

}  // namespace pipewright::cli
