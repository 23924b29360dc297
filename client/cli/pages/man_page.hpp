// Manual pages from help texts, which are their only source.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pipewright::cli {

/// The page NAME(1) in roff (man macros), from what `NAME --help` prints: a description, "Usage:",
/// sections of options and the like in two columns, and examples, which stay as they are typed.
/// `name` has hyphens for spaces ("pipewright-pool-start"), `see_also` too.
std::string man_page(const std::string& name, std::string_view help, const std::string& version,
                     const std::vector<std::string>& see_also);

}  // namespace pipewright::cli
