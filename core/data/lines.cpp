#include "core/data/lines.hpp"

namespace pipewright {

bool next_line(std::istream& in, std::string& line, const std::string& name, std::int64_t number) {
  static constexpr std::size_t line_bytes_max = std::size_t{16} << 20;
  char part[4096];
  line.clear();
  while (true) {
    in.getline(part, sizeof part);
    const auto got = static_cast<std::size_t>(in.gcount());
    if (in.eof()) {
      line.append(part, got);
      return !line.empty();
    }
    if (!in.fail()) {
      line.append(part, got - 1);
      return true;
    }
    if (in.bad() || got == 0) return false;
    in.clear();
    line.append(part, got);
    check_line_length(line.size(), line_bytes_max, name, number);
  }
}

}  // namespace pipewright
