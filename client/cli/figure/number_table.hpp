// Columns of numbers from a CSV file with a line of names: the curves that a run leaves, or a table
// of one's own.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace pipewright::cli {

/// The names of a file's columns. Throws DataError when it cannot be read or has none.
std::vector<std::string> column_names(const std::string& path);

/// The columns of these names, each with one number per line of the file ("nan" and "inf" are
/// numbers here, and an empty cell is nan). Lines that begin with '#' are passed over. Throws
/// DataError with the line, and ConfigError with the names that there are when one is missing.
std::vector<std::vector<double>> read_columns(const std::string& path,
                                              std::span<const std::string> names);

}  // namespace pipewright::cli
