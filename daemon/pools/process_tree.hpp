// Processes and what they have started, as /proc shows them.
#pragma once

#include <sys/types.h>

#include <vector>

namespace pipewright {

/// The processes that `root` has started, and those that they have, as of now.
std::vector<pid_t> processes_below(pid_t root);

/// SIGKILL to `root` and all below it: also those that have been stopped, or that lead a process
/// group of their own.
void kill_tree(pid_t root);

}  // namespace pipewright
