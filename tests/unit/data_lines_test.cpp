// Lines of any length, around the sizes in which they are read.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "core/data/lines.hpp"

namespace pipewright {
namespace {

std::vector<std::string> lines_by_getline(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  std::string line;
  while (next_line(in, line, "f", 1)) lines.push_back(line);
  return lines;
}

TEST(NextLine, GivesWhatGetlineGives) {
  std::vector<std::string> texts{"", "\n", "\n\n", "a", "a\n", "a\n\nb", std::string("a\0b\nc", 5)};
  for (const std::size_t size : {4094, 4095, 4096, 4097, 8189, 8190, 8191, 8192}) {
    const std::string line(size, 'x');
    for (const char* more : {"", "\n", "\n\n", "\ny", "\ny\n"}) texts.push_back(line + more);
    texts.push_back("y\n" + line + "\n" + line);
  }
  for (const std::string& text : texts) {
    EXPECT_EQ(lines_of(text), lines_by_getline(text)) << text.size() << " bytes";
  }
}

TEST(NextLine, RefusesALineThatWouldFillTheMemory) {
  std::istringstream in(std::string((std::size_t{16} << 20) + 5000, '0'));
  std::string line;
  EXPECT_THROW(next_line(in, line, "f", 1), DataError);
}

}  // namespace
}  // namespace pipewright
