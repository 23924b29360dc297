// summary.json, and other trees, in readable form.
#pragma once

#include <string>

#include "core/base/value.hpp"
#include "proto/codec/api.hpp"

namespace pipewright::cli {

/// One line per leaf, "outer.inner  value", aligned; short lists on one line.
std::string format_tree(const Value& tree, int columns_max = 0);

/// The end of a job for people: outcome, final values, makespan, bubble, delay, and staleness and
/// stash of each stage, as far as its summary has them.
std::string format_summary(const Job& job, int columns_max = 0);

/// The tree of a JSON text; null for an empty one. Throws ConfigError.
Value parse_json(const std::string& text, const std::string& name);

/// The job's name, printable, or empty.
std::string job_name(const Job& job);

}  // namespace pipewright::cli
