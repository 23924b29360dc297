// PW_CHECK(condition, text << values): stops the program on a programmer's mistake, in every build,
// and prints where, with rank, stage and action where the caller names them.
#pragma once

#include <sstream>
#include <string>

namespace pipewright {

[[noreturn]] void check_failed(const char* condition, const char* file, int line,
                               const std::string& message);

}  // namespace pipewright

#define PW_CHECK(condition, message)                                                   \
  do {                                                                                 \
    if (!(condition)) [[unlikely]] {                                                   \
      std::ostringstream pw_check_text;                                                \
      pw_check_text << message; /* NOLINT */                                           \
      ::pipewright::check_failed(#condition, __FILE__, __LINE__, pw_check_text.str()); \
    }                                                                                  \
  } while (false)
