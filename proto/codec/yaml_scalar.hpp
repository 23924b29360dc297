// The type of a YAML scalar: the core schema of YAML 1.2 (so 1e-4 is a number, yes and 1_000 are
// text).
#pragma once

#include <string>

#include "core/base/value.hpp"

namespace pipewright {

struct YamlScalar {
  Value value;
  std::string fault;  // why it has no value; else empty
};

/// `tag` as yaml-cpp gives it: "?" for plain text, "!" for quoted text.
YamlScalar yaml_scalar(const std::string& tag, const std::string& text);

}  // namespace pipewright
