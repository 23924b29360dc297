#include "tests/support/heap_count.hpp"

#include <atomic>
#include <cstddef>

// malloc, not operator new, is what everybody comes to at last: the standard library's new, and
// Eigen past it. (With a sanitizer in its place the sanitizer tells.)
namespace {
std::atomic<long> allocations{0};
}

#if defined(__SANITIZE_ADDRESS__)
// g++'s package lacks the header that declares it.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void*,
                                                                           std::size_t),
                                                         void (*on_free)(const volatile void*));
namespace {
[[maybe_unused]] const int hooks = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, std::size_t) { ++allocations; }, [](const volatile void*) {});
}
#else
extern "C" {
void* __libc_malloc(std::size_t bytes);  // NOLINT: glibc's own names
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* block, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) {
  ++allocations;
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  ++allocations;
  return __libc_calloc(count, bytes);
}
void* realloc(void* block, std::size_t bytes) {
  ++allocations;
  return __libc_realloc(block, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  ++allocations;
  return __libc_memalign(alignment, bytes);
}
}
#endif

namespace pipewright {
long heap_allocations() {
  return allocations;
}
}  // namespace pipewright
