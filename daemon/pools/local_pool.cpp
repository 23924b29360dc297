#include "daemon/pools/local_pool.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "core/base/text.hpp"
#include "daemon/log.hpp"
#include "daemon/pools/process_tree.hpp"
#include "daemon/store/job_files.hpp"

namespace pipewright {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds backoff_min{500};
constexpr milliseconds backoff_max{30'000};
constexpr milliseconds healthy_after{10'000};
constexpr std::uintmax_t log_bytes_max = std::uintmax_t{10} << 20;

// More ranks than cores may share a core, root may run it, messages go by shared memory, and ranks
// are killed at once when it is told to end.
constexpr const char* environment[] = {"OMPI_ALLOW_RUN_AS_ROOT=1",
                                       "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                                       "OMPI_MCA_mpi_yield_when_idle=1",
                                       "OMPI_MCA_hwloc_base_binding_policy=none",
                                       "OMPI_MCA_pml=ob1",
                                       "OMPI_MCA_btl=vader,self",
                                       "OMPI_MCA_btl_vader_single_copy_mechanism=none",
                                       "OMPI_MCA_odls_base_sigkill_timeout=1",
                                       "OMPI_MCA_oob_tcp_if_include=lo"};

/// The environment of this process, but for the names that are set above.
std::vector<char*> child_environment() {
  std::vector<char*> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const bool ours = std::any_of(
        std::begin(environment), std::end(environment),
        [&](const char* e) { return std::strncmp(*entry, e, std::strcspn(e, "=") + 1) == 0; });
    if (!ours) all.push_back(*entry);
  }
  for (const char* entry : environment) all.push_back(const_cast<char*>(entry));
  all.push_back(nullptr);
  return all;
}

/// Between fork and exec: nothing that allocates.
[[noreturn]] void become(const std::vector<char*>& arguments, const std::vector<char*>& variables,
                         int log) {
  ::setpgid(0, 0);
  const int null = ::open("/dev/null", O_RDONLY);
  ::dup2(null, STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::close_range(3, ~0U, 0);
  ::execvpe(arguments[0], arguments.data(), variables.data());
  const char* why = std::strerror(errno);
  constexpr char what[] = "mpirun cannot be started: ";
  (void)!::write(STDERR_FILENO, what, sizeof what - 1);
  (void)!::write(STDERR_FILENO, why, std::strlen(why));
  (void)!::write(STDERR_FILENO, "\n", 1);
  ::_exit(127);
}

int open_log(const std::filesystem::path& file) {
  std::error_code ec;
  if (std::filesystem::file_size(file, ec) > log_bytes_max && !ec) {
    std::filesystem::rename(file, file.string() + ".1", ec);
  }
  return ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

std::string describe(int status) {
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  return "exit status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

LocalPool::LocalPool(LocalPoolOptions options, Time now) : options_(std::move(options)) {
  const std::optional<LocalPoolRecord> record = read_local_pool(options_.data_dir);
  if (!record || !is_there(*record)) return;
  if (record->ranks == options_.ranks) {
    log_info("local pool adopted", {{"ranks", record->ranks}, {"pid", record->pid}});
    adopted_ = record;
    pid_ = static_cast<pid_t>(record->pid);
    started_ = now;
  } else {
    log_info("local pool of an earlier daemon is ended", {{"ranks", record->ranks}});
    kill_tree(static_cast<pid_t>(record->pid));
  }
}

LocalPool::~LocalPool() {
  kill();
}

void LocalPool::tick(Time now) {
  if (running()) note_end(now);
  if (!running() && !retired_ && now >= next_start_) start(now);
}

void LocalPool::start(Time now) {
  std::vector<std::string> words = {"mpirun",
                                    "--oversubscribe",
                                    "-n",
                                    std::to_string(options_.ranks),
                                    options_.worker.string(),
                                    "--daemon",
                                    options_.daemon_url,
                                    "--daemon-file",
                                    (options_.data_dir / "daemon.json").string(),
                                    "--token-file",
                                    options_.token_file.string(),
                                    "--name",
                                    options_.name,
                                    "--silence-max",
                                    format_number(options_.silence_max_s)};
  if (!options_.tls_ca.empty()) words.insert(words.end(), {"--tls-ca", options_.tls_ca});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const std::vector<char*> variables = child_environment();
  const int log = open_log(options_.log_file);
  const pid_t child = log < 0 ? -1 : ::fork();
  if (child == 0) become(arguments, variables, log);
  started_ = now;
  has_worked_ = false;
  if (child < 0) {
    const int why = errno;
    delay_next_start(now);
    log_error("local pool cannot be started", {{"error", std::strerror(why)}});
  } else {
    pid_ = child;
    ::setpgid(child, child);  // here too: whoever comes first
    const LocalPoolRecord record{child, process_started(child), options_.ranks};
    try {
      write_file_atomically(options_.data_dir / local_pool_file, to_text(record), 0600);
    } catch (const Error& error) {
      log_warning("a daemon that comes after this one will not know its pool",
                  {{"error", error.what()}});
    }
    log_info("local pool started",
             {{"ranks", options_.ranks}, {"pid", child}, {"log", options_.log_file.string()}});
  }
  if (log >= 0) ::close(log);
}

void LocalPool::note_end(Time now) {
  if (adopted_) {
    if (!is_there(*adopted_)) has_ended(now, "it has gone");
    return;
  }
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return;
  has_ended(now, describe(status));
}

void LocalPool::has_ended(Time now, const std::string& how) {
  pid_ = -1;
  adopted_.reset();
  end_ = how;
  if (retired_) {
    log_info("local pool ended");
    return;
  }
  if (has_worked_ || now - started_ > healthy_after) {
    backoff_ = milliseconds{0};
    next_start_ = now;
  } else {
    delay_next_start(now);
  }
  log_warning("local pool died",
              {{"how", how}, {"again_ms", backoff_.count()}, {"log", options_.log_file.string()}});
}

void LocalPool::delay_next_start(Time now) {
  backoff_ = std::clamp(backoff_ * 2, backoff_min, backoff_max);
  next_start_ = now + backoff_;
}

void LocalPool::terminate() {
  retired_ = true;
  if (running()) ::kill(pid_, SIGTERM);
}

void LocalPool::kill() {
  retired_ = true;
  if (!running()) return;
  reap();
  pid_ = -1;
}

void LocalPool::reap() {
  kill_tree(pid_);
  if (!adopted_) ::waitpid(pid_, nullptr, 0);
}

void LocalPool::replace(Time now) {
  if (!running()) return;
  reap();
  has_ended(now, "ended by the daemon, for it had left");
}

}  // namespace pipewright
