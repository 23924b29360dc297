// pools, pool start, pool drop: the worlds of ranks that a daemon has, a new one from Slurm, and
// one that does not come back.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <thread>

#include "client/cli/command.hpp"
#include "client/cli/local/process.hpp"
#include "client/cli/net/api.hpp"
#include "client/cli/view/pools_view.hpp"
#include "client/cli/view/screen.hpp"
#include "client/cli/view/text.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace pipewright::cli {

namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  EndpointFlags endpoint;
  bool json = false;
  bool slurm = false;
  bool srun = false;
  bool dry_run = false;
  int timeout_seconds = 600;
  std::optional<double> silence_max_seconds;
  std::string name;
  std::vector<std::string> sbatch;  // what goes to sbatch as it is
};

void print(const PoolList& list, bool json) {
  if (json) {
    std::cout << encode(list, WireFormat::json) << '\n';
    return;
  }
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  std::cout << format_pools(list, now.count(), table_columns(STDOUT_FILENO));
}

int show_pools(const Options& options) {
  const PoolList list = Api(find_daemon(options.endpoint)).pools();
  if (list.pools.empty() && !options.json) {
    std::cerr << "no pools\n";
  } else {
    print(list, options.json);
  }
  return exit_ok;
}

/// The batch scripts, beside the binaries' folder in the build tree as when installed.
fs::path batch_script(const Options& options) {
  const fs::path script = (own_folder() / "../share/pipewright/slurm").lexically_normal() /
                          (options.srun ? "pool-srun.sbatch" : "pool.sbatch");
  if (!fs::exists(script)) {
    throw Error("the batch script " + script.string() + " is not there: it is installed with " +
                own_folder().string());
  }
  return script;
}

std::vector<std::string> sbatch_command(const Options& options, const fs::path& script,
                                        const std::optional<Endpoint>& daemon) {
  std::vector<std::string> command{"sbatch", "--parsable"};
  command.insert(command.end(), options.sbatch.begin(), options.sbatch.end());
  command.insert(command.end(), {script.string(), "--bin", own_folder().string()});
  if (options.silence_max_seconds) {
    command.insert(command.end(), {"--silence-max", format_number(*options.silence_max_seconds)});
  }
  if (daemon) {
    command.insert(command.end(), {"--url", daemon->url(), "--token-file",
                                   fs::absolute(daemon->token_file).string()});
    if (!daemon->tls_ca.empty()) {
      command.insert(command.end(), {"--tls-ca", fs::absolute(daemon->tls_ca).string()});
    }
  }
  return command;
}

/// As one would type it.
std::string shell_text(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& word : command) {
    const bool plain =
        !word.empty() && word.find_first_of(" \t\n'\"\\$`&|;<>()*?[]#~!{}") == std::string::npos;
    std::string quoted = word;
    for (std::size_t at = 0; (at = quoted.find('\'', at)) != std::string::npos; at += 4) {
      quoted.replace(at, 1, "'\\''");
    }
    text += (text.empty() ? "" : " ") + (plain ? word : "'" + quoted + "'");
  }
  return text;
}

int show_dry_run(const Options& options, const fs::path& script) {
  std::optional<Endpoint> daemon;
  try {
    daemon = find_daemon(options.endpoint);
  } catch (const Error& error) {
    std::cerr << error.what() << "; the command is shown without it\n";
  }
  std::ifstream file(script);
  std::cout << "$ " << shell_text(sbatch_command(options, script, daemon)) << "\n\n"
            << std::string{std::istreambuf_iterator<char>(file), {}};
  return exit_ok;
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

/// "RUNNING None", "PENDING Resources", "FAILED NonZeroExitCode"; empty when Slurm knows no such
/// job.
std::string slurm_state(const std::string& job) {
  const ProgramEnd end =
      run_program({"squeue", "--noheader", "--states=all", "--jobs", job, "--format=%T %r"});
  return end.status == 0 ? std::string(trim(end.out)) : std::string();
}

/// The end of what the batch script has written, if it is where this program can read it.
std::string slurm_log(const std::string& job) {
  const ProgramEnd end = run_program({"scontrol", "show", "job", job});
  constexpr std::string_view key = "StdOut=";
  const std::size_t at = end.out.find(key);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + key.size();
  const std::string path = end.out.substr(begin, end.out.find('\n', begin) - begin);
  const std::string lines = tail(path, 0, 15);
  return "; the end of " + path + ":\n" + lines;
}

PoolInfo wait_until_attached(const Options& options, const Api& api, const std::string& job) {
  static constexpr std::string_view alive[] = {"PENDING", "CONFIGURING", "RUNNING", "REQUEUED",
                                               "SUSPENDED"};
  static constexpr std::chrono::seconds state_interval{1};
  const auto deadline = Clock::now() + std::chrono::seconds(options.timeout_seconds);
  Clock::time_point asked{};
  std::string state;
  for (;;) {
    for (const PoolInfo& pool : api.pools().pools) {
      if (pool.slurm_job == job && pool.state == "attached") return pool;
    }
    if (Clock::now() - asked > state_interval) {
      asked = Clock::now();
      state = slurm_state(job);
      const bool lives =
          std::any_of(std::begin(alive), std::end(alive),
                      [&](std::string_view word) { return state.starts_with(word); });
      if (!lives) {
        throw Error("Slurm job " + job + " ended before its pool was attached (" +
                    (state.empty() ? "Slurm does not know it any more" : state) + ")" +
                    slurm_log(job));
      }
    }
    if (Clock::now() > deadline) {
      throw Error("the pool of Slurm job " + job + " is not attached after " +
                  std::to_string(options.timeout_seconds) + " s (" + state +
                  "); it stays in Slurm's queue: scancel " + job + " takes it out");
    }
    // Neither Slurm nor the daemon tells us by itself.
    std::this_thread::sleep_for(std::chrono::milliseconds{200});
  }
}

int start_pool(const Options& options) {
  if (!options.slurm) {
    throw ConfigError(
        "pool start needs --slurm: a pool on this machine comes with `pipewright up`, one by hand "
        "with mpirun pipewright-worker");
  }
  const fs::path script = batch_script(options);
  if (options.dry_run) return show_dry_run(options, script);
  const Endpoint daemon = find_daemon(options.endpoint);
  const Api api(daemon);
  api.pools();  // before anything waits in Slurm's queue for a daemon that does not answer
  if (is_loopback(daemon.host)) {
    std::cerr << "the daemon listens on " << daemon.host
              << " alone: a pool on another machine will not reach it (pipewrightd --listen)\n";
  }
  const ProgramEnd end = run_program(sbatch_command(options, script, daemon));
  if (end.status != 0)
    throw Error("sbatch refuses (exit status " + std::to_string(end.status) + ")");
  const std::string answer(trim(end.out));  // JOB or JOB;CLUSTER
  const std::string job = answer.substr(0, answer.find(';'));
  std::cerr << "submitted Slurm job " << job << "; waiting for its pool\n";
  print({{wait_until_attached(options, api, job)}}, options.json);
  return exit_ok;
}

int drop_pool(const Options& options) {
  const PoolInfo pool = Api(find_daemon(options.endpoint)).drop_pool(options.name);
  if (options.json) {
    std::cout << encode(pool, WireFormat::json) << '\n';
  } else {
    std::cout << "pool '" << printable(pool.name) << "' is dropped: what it ran is queued again\n";
  }
  return exit_ok;
}

void add_common_flags(CLI::App* command, Options& options) {
  add_endpoint_flags(command, options.endpoint);
  command->add_flag("--json", options.json, "Protobuf's JSON form instead of text");
}

}  // namespace

void add_pools(Program& program) {
  CLI::App* command = program.add_command(
      "pools",
      "Show the pools of ranks that are attached to the daemon: how many ranks are busy and with "
      "which jobs, how long the pool is there and when it was heard last",
      "pipewright pools");
  auto options = std::make_shared<Options>();
  add_common_flags(command, *options);
  program.on(command, [options] { return show_pools(*options); });
}

void add_pool(Program& program) {
  CLI::App* pool =
      program.add_command("pool", "Start a pool of ranks, or give up one that is away",
                          "pipewright pool start --slurm --nodes 4 --ntasks-per-node 8");
  pool->require_subcommand(1);
  CLI::App* start = pool->add_subcommand("start",
                                         "Submit a pool to Slurm and wait until it is attached. "
                                         "What is not listed here goes to sbatch "
                                         "as it is; a pool has one rank per task");
  start->footer(
      "Examples:\n"
      "  pipewright pool start --slurm --nodes 4 --ntasks-per-node 8 --time 2:00:00\n"
      "  pipewright pool start --slurm --srun --ntasks 32 --partition short --dry-run");
  start->allow_extras();
  auto options = std::make_shared<Options>();
  add_common_flags(start, *options);
  start->add_flag("--slurm", options->slurm, "By sbatch");
  start->add_flag("--srun", options->srun, "Ranks by srun --mpi=pmix rather than mpirun");
  start->add_flag("--dry-run", options->dry_run, "Show the command and the batch script instead");
  start->add_option("--timeout", options->timeout_seconds, "Seconds to wait at most")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  start
      ->add_option("--silence-max", options->silence_max_seconds,
                   "Seconds without a word of a rank after which the pool ends and its runs are "
                   "lost (pipewright-worker --silence-max)")
      ->check(CLI::Range(0.1, 86'400.0))
      ->type_name("SECONDS");
  program.on(start, [options, start] {
    options->sbatch = start->remaining();
    return start_pool(*options);
  });

  CLI::App* drop = pool->add_subcommand(
      "drop",
      "Wait no longer for a pool that is away: what it ran starts again on others at once, "
      "and is dropped there should it come back (needs an admin's token)");
  drop->footer("Example:\n  pipewright pool drop slurm-4711");
  auto drop_options = std::make_shared<Options>();
  add_common_flags(drop, *drop_options);
  drop->add_option("NAME", drop_options->name, "The pool, as `pipewright pools` shows it")
      ->required();
  program.on(drop, [drop_options] { return drop_pool(*drop_options); });
}

}  // namespace pipewright::cli
