// The target of a request: path and query.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

struct Uri {
  std::vector<std::string> path;             // "/v1/jobs/7" is {"v1", "jobs", "7"}
  std::map<std::string, std::string> query;  // the last of equal keys counts

  /// Throws ProtocolError for what is not a path, or has a bad %-sequence.
  static Uri parse(std::string_view target);
};

/// "a%20b" -> "a b", and '+' -> ' ' in a query. Throws ProtocolError.
std::string percent_decoded(std::string_view text, bool in_query);

}  // namespace pipewright
