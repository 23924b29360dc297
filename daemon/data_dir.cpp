#include "daemon/data_dir.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/base/value.hpp"
#include "daemon/store/job_files.hpp"
#include "proto/codec/provenance.hpp"

namespace pipewright {

namespace fs = std::filesystem;

DataDir::DataDir(fs::path path) {
  std::error_code ec;
  path_ = fs::absolute(path, ec).lexically_normal();
  const bool there = fs::exists(path_, ec);
  if (!there && (!fs::create_directories(path_, ec) || ::chmod(path_.c_str(), 0700) != 0)) {
    throw ConfigError(path_.string() + ": the data folder cannot be made: " +
                      (ec ? ec.message() : std::strerror(errno)));
  }
  const fs::path lock_file = path_ / "lock";
  lock_ = ::open(lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock_ < 0) {
    throw ConfigError(path_.string() +
                      ": the data folder cannot be written: " + std::strerror(errno));
  }
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    std::array<char, 32> owner{};
    const ssize_t bytes = ::read(lock_, owner.data(), owner.size() - 1);
    ::close(lock_);
    throw ConfigError(path_.string() + ": another pipewrightd (pid " +
                      std::string(trim({owner.data(), bytes > 0 ? std::size_t(bytes) : 0})) +
                      ") uses this data folder; end it first or choose another --data-dir");
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(lock_, 0) != 0 ||
      ::write(lock_, pid.data(), pid.size()) != static_cast<ssize_t>(pid.size())) {
    ::close(lock_);
    throw ConfigError(lock_file.string() + ": cannot be written: " + std::strerror(errno));
  }
  // The folder itself may be somebody's home and keeps its mode; what is ours in it is shut, also
  // where an older daemon has left it open (SQLite gives -wal and -shm the mode of the store).
  for (const char* name : {"pipewright.db", "pipewright.db-wal", "pipewright.db-shm", "jobs"}) {
    const fs::path ours = path_ / name;
    const mode_t mode = fs::is_directory(ours, ec) ? 0700 : 0600;
    if (::chmod(ours.c_str(), mode) != 0 && errno != ENOENT) {
      const std::string fault = std::strerror(errno);
      ::close(lock_);
      throw ConfigError(ours.string() + ": cannot be made its owner's alone: " + fault);
    }
  }
}

DataDir::~DataDir() {
  if (announced_) ::unlink((path_ / "daemon.json").c_str());
  ::close(lock_);  // the lock ends with it; its file stays, or two daemons could lock two files
}

void DataDir::announce(const std::string& url, const std::string& tls_ca) {
  Value value = Value::map();
  value.set("url", url);
  value.set("pid", static_cast<std::int64_t>(::getpid()));
  value.set("version", program_version());
  if (!tls_ca.empty()) value.set("tls_ca", fs::absolute(tls_ca).string());
  write_file_atomically(path_ / "daemon.json", to_json(value) + "\n", 0600);
  announced_ = true;
}

}  // namespace pipewright
