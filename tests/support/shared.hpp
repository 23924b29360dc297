// Files that lie beside the project in ../shared: other people's data and the golden numbers.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/text.hpp"

namespace pipewright {

inline std::string shared_path(const std::string& relative) {
  return std::string(PIPEWRIGHT_SOURCE_DIR) + "/../shared/" + relative;
}

/// Numeric rows of a CSV file, without its first line and lines that begin with '#'.
inline std::vector<std::vector<double>> read_numbers(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::vector<std::vector<double>> rows;
  while (std::getline(in, line)) {
    std::vector<double> row;
    for (const auto cell : split(trim(line), ',')) {
      const auto value = parse_real(cell);
      if (!value) break;
      row.push_back(*value);
    }
    if (!row.empty()) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace pipewright

/// Skips the test where a file of ../shared is absent, and says so.
#define PIPEWRIGHT_NEEDS_SHARED(relative)                                           \
  if (!std::filesystem::exists(::pipewright::shared_path(relative))) {              \
    GTEST_SKIP() << "../shared/" << relative << " is not here: this test needs it"; \
  }
