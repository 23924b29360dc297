// Counts calls of malloc and its like, so of operator new too: link heap_count.cpp into the test
// program.
#pragma once

namespace pipewright {
long heap_allocations();
}  // namespace pipewright
