#include "core/base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace pipewright {

void check_failed(const char* condition, const char* file, int line, const std::string& message) {
  std::fprintf(stderr, "pipewright: internal error at %s:%d: %s\n  (violated: %s)\n", file, line,
               message.c_str(), condition);
  std::fflush(stderr);
  std::abort();
}

}  // namespace pipewright
