// Who made numbers: a program on a type of CPU. Two makers that are equal make the same bits.
#pragma once

#include <string>

namespace pipewright {

struct Maker {
  std::string version;   // "0.1.0"
  std::string commit;    // of git, as program_commit() has it
  std::string build;     // tells two binaries apart, as program_build() has it
  std::string cpu_type;  // of several ranks the different ones, joined by " + "
  friend bool operator==(const Maker&, const Maker&) = default;
};

}  // namespace pipewright
