// To be preloaded (LD_PRELOAD): while a file FOLDER.read-only exists, FOLDER (READ_ONLY_FOLDER) is
// as on a disk that has turned read-only, also for files that are open. A mount cannot be made so
// under a program that writes there: the kernel waits for it to close its files.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace {

const char* folder() {
  static const char* const name = std::getenv("READ_ONLY_FOLDER");
  return name;
}

bool is_read_only() {
  struct stat ignored;
  return folder() != nullptr &&
         ::stat((std::string(folder()) + ".read-only").c_str(), &ignored) == 0;
}

bool refuses(const char* path) {
  return folder() != nullptr && std::string_view(path).starts_with(folder()) && is_read_only();
}

bool refuses(int descriptor) {
  if (!is_read_only()) return false;
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  char path[4096];
  const ssize_t size = ::readlink(link.c_str(), path, sizeof path);
  return size > 0 && std::string_view(path, static_cast<std::size_t>(size)).starts_with(folder());
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

int read_only() {
  errno = EROFS;
  return -1;
}

int open_as(const char* name, const char* path, int flags, mode_t mode) {
  const bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
  if (writes && refuses(path)) return read_only();
  return next<int(const char*, int, ...)>(name)(path, flags, mode);
}

mode_t mode_of(int flags, std::va_list words) {
  return (flags & O_CREAT) != 0 ? va_arg(words, mode_t) : 0;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  std::va_list words;
  va_start(words, flags);
  const mode_t mode = mode_of(flags, words);
  va_end(words);
  return open_as("open", path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  std::va_list words;
  va_start(words, flags);
  const mode_t mode = mode_of(flags, words);
  va_end(words);
  return open_as("open64", path, flags, mode);
}
int access(const char* path, int mode) noexcept {
  if ((mode & W_OK) != 0 && refuses(path)) return read_only();
  return next<int(const char*, int)>("access")(path, mode);
}
ssize_t write(int descriptor, const void* data, size_t size) {
  if (refuses(descriptor)) return read_only();
  return next<ssize_t(int, const void*, size_t)>("write")(descriptor, data, size);
}
ssize_t pwrite(int descriptor, const void* data, size_t size, off_t at) {
  if (refuses(descriptor)) return read_only();
  return next<ssize_t(int, const void*, size_t, off_t)>("pwrite")(descriptor, data, size, at);
}
ssize_t pwrite64(int descriptor, const void* data, size_t size, off64_t at) {
  if (refuses(descriptor)) return read_only();
  return next<ssize_t(int, const void*, size_t, off64_t)>("pwrite64")(descriptor, data, size, at);
}
int ftruncate(int descriptor, off_t size) noexcept {
  if (refuses(descriptor)) return read_only();
  return next<int(int, off_t)>("ftruncate")(descriptor, size);
}
int ftruncate64(int descriptor, off64_t size) noexcept {
  if (refuses(descriptor)) return read_only();
  return next<int(int, off64_t)>("ftruncate64")(descriptor, size);
}
int rename(const char* from, const char* to) noexcept {
  if (refuses(from) || refuses(to)) return read_only();
  return next<int(const char*, const char*)>("rename")(from, to);
}
int mkdir(const char* path, mode_t mode) noexcept {
  if (refuses(path)) return read_only();
  return next<int(const char*, mode_t)>("mkdir")(path, mode);
}
int unlink(const char* path) noexcept {
  if (refuses(path)) return read_only();
  return next<int(const char*)>("unlink")(path);
}

}  // extern "C"
