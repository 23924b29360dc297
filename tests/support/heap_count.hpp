// Counts calls of operator new: link heap_count.cpp into the test program.
#pragma once

namespace pipewright {
long heap_allocations();
}  // namespace pipewright
