#include "tests/support/heap_count.hpp"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

// In a file of its own: inlined next to a call of new, g++ takes free() for a mismatch.
namespace {
std::atomic<long> allocations{0};
}

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* block = std::malloc(bytes)) return block;
  throw std::bad_alloc();
}
void operator delete(void* block) noexcept {
  std::free(block);
}
void operator delete(void* block, std::size_t) noexcept {
  std::free(block);
}

namespace pipewright {
long heap_allocations() {
  return allocations;
}
}  // namespace pipewright
