// YAML 1.2 (core schema) text as a Value tree. Anchors and aliases are expanded within bounds;
// merge keys, tags beyond the core ones and several documents are refused. JSON is YAML.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/base/value.hpp"

namespace pipewright {

struct YamlTree {
  Value value;                                             // null for a text without a document
  std::string root_place;                                  // "FILE:LINE:COLUMN: "
  std::map<std::string, std::string, std::less<>> places;  // dotted path -> "FILE:LINE: "
};

enum class YamlPlaces { line_and_column, source_only };

/// Throws ConfigError "SOURCE:LINE:COLUMN: message", or "SOURCE: message" for a source without
/// lines (an argument).
YamlTree parse_yaml(std::string_view text, const std::string& source,
                    YamlPlaces places = YamlPlaces::line_and_column);

}  // namespace pipewright
