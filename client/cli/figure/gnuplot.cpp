#include "client/cli/figure/gnuplot.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "client/cli/view/text.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace pipewright::cli {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void system_fault(const std::string& what, int fault) {
  throw Error(what + ": " + std::strerror(fault));
}

/// A file without a name, in memory.
class ScratchFile {
 public:
  ScratchFile() : fd_(::memfd_create("pipewright-plot", MFD_CLOEXEC)) {
    if (fd_ < 0) system_fault("cannot make a temporary file", errno);
  }
  ~ScratchFile() { ::close(fd_); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  int fd() const { return fd_; }
  void write(std::string_view text) {
    while (!text.empty()) {
      const ssize_t count = ::write(fd_, text.data(), text.size());
      if (count < 0 && errno != EINTR) system_fault("cannot write a temporary file", errno);
      if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
    }
    ::lseek(fd_, 0, SEEK_SET);
  }
  std::string beginning() const {
    std::string text(4096, '\0');
    const ssize_t count = ::pread(fd_, text.data(), text.size(), 0);
    text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return text;
  }

 private:
  int fd_;
};

/// A file beside `out` that becomes it at the end.
class NewFile {
 public:
  explicit NewFile(const fs::path& out) : out_(out), path_(out.string() + ".XXXXXX") {
    fd_ = ::mkostemp(path_.data(), O_CLOEXEC);
    if (fd_ < 0) {
      throw ConfigError("--out " + out.string() + ": cannot be written: " + std::strerror(errno));
    }
    const mode_t mask = ::umask(0);  // mkostemp gives a file to its owner alone
    ::umask(mask);
    ::fchmod(fd_, 0666 & ~mask);
  }
  ~NewFile() {
    ::close(fd_);
    if (!kept_) ::unlink(path_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  int fd() const { return fd_; }
  void keep() {
    if (::rename(path_.c_str(), out_.c_str()) != 0) {
      throw ConfigError("--out " + out_.string() + ": cannot be written: " + std::strerror(errno));
    }
    kept_ = true;
  }

 private:
  fs::path out_;
  std::string path_;
  int fd_ = -1;
  bool kept_ = false;
};

/// The exit status as waitpid gives it.
int run(int in, int out, int err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  const char* const argv[] = {"gnuplot", "--default-settings", nullptr};
  pid_t pid = -1;
  const int fault =
      ::posix_spawnp(&pid, argv[0], &actions, nullptr, const_cast<char* const*>(argv), ::environ);
  posix_spawn_file_actions_destroy(&actions);
  if (fault == ENOENT) {
    throw Error(
        "figures are drawn by gnuplot, which is not installed: apt-get install gnuplot-nox");
  }
  if (fault != 0) system_fault("cannot start gnuplot", fault);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) system_fault("cannot wait for gnuplot", errno);
  }
  return status;
}

}  // namespace

void run_gnuplot(const std::string& script, const fs::path& out) {
  ScratchFile input, errors;
  input.write(script);
  NewFile picture(out);
  const int status = run(input.fd(), picture.fd(), errors.fd());
  const std::string said = errors.beginning();
  // A terminal that gnuplot was built without leaves status 0 and no picture.
  if (status != 0 || ::lseek(picture.fd(), 0, SEEK_END) == 0) {
    throw Error("gnuplot failed: " + printable(trim(said)));
  }
  picture.keep();
}

}  // namespace pipewright::cli
