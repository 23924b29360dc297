// pipewright-worker: the MPI program that a pool is made of. Rank 0 coordinates, all ranks host
// stages.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "proto/codec/job_file.hpp"
#include "proto/codec/json.hpp"
#include "proto/codec/provenance.hpp"
#include "worker/mpi/mpi_transport.hpp"
#include "worker/runtime/pool.hpp"

namespace {

using namespace pipewright;

std::atomic<bool> stop_asked{false};
std::atomic<bool> kill_follows{false};  // a launcher's SIGTERM comes shortly before its SIGKILL
void on_signal(int number) {
  if (number == SIGTERM) kill_follows = true;
  stop_asked = true;
}

struct Options {
  std::string daemon, daemon_file, token_file, tls_ca, name, job_file, out;
  int expect_ranks = 0;
  double silence_max_s = std::chrono::duration<double>(silence_max_default).count();

  std::chrono::milliseconds silence_max() const {
    return std::chrono::milliseconds(static_cast<std::int64_t>(1000 * silence_max_s));
  }
  std::vector<std::string> sets;
};

void add_options(CLI::App& app, Options& options) {
  auto* daemon =
      app.add_option("--daemon", options.daemon,
                     "Attach to the daemon at this address (http://127.0.0.1:7070, https://...)");
  auto* token = app.add_option("--token-file", options.token_file, "File with the daemon's token");
  app.add_option("--tls-ca", options.tls_ca,
                 "Certificates (PEM) to trust for https://, instead of the system's")
      ->envname("PIPEWRIGHT_TLS_CA")
      ->type_name("FILE");
  auto* file = app.add_option(
      "--daemon-file", options.daemon_file,
      "daemon.json in the daemon's data folder: where to look for a daemon that has come back");
  auto* name = app.add_option("--name", options.name, "Name of the pool (default: HOST-PID)");
  auto* run = app.add_option("--run", options.job_file, "Without a daemon: run this job file");
  auto* out = app.add_option("--out", options.out, "Folder for the files of --run");
  app.add_option("--expect-ranks", options.expect_ranks,
                 "Refuse to start when the world has another size (default: under srun, the number "
                 "of the step's tasks)")
      ->check(CLI::Range(1, 1'000'000))
      ->type_name("N");
  app.add_option("--silence-max", options.silence_max_s,
                 "Seconds without a word of a rank after which its runs are lost and the pool ends "
                 "(ten times as long while it reads a run's data); longer than any action takes")
      ->check(CLI::Range(0.1, 86'400.0))
      ->capture_default_str()
      ->type_name("SECONDS");
  auto* set = app.add_option("--set", options.sets, "key=value, changes a key of --run's job file")
                  ->expected(1)
                  ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  daemon->needs(token)->excludes(run);
  token->needs(daemon);
  file->needs(daemon);
  name->needs(daemon);
  run->needs(out);
  out->needs(run);
  set->needs(run);
  app.footer(
      "Examples:\n"
      "  mpirun -n 4 pipewright-worker --daemon http://127.0.0.1:7070 --token-file DIR/token\n"
      "  mpirun -n 4 pipewright-worker --run job.yaml --out results\n"
      "`pipewright up` starts a pool on this machine by itself.\n"
      "At SIGTERM or SIGUSR1 a pool gives its runs back to the daemon and ends with status 0. When "
      "the daemon is gone it keeps its runs and attaches again, for as long as that daemon's lease "
      "said.");
  app.set_version_flag("--version", std::string(program_version()));
}

void say(const std::string& text) {
  std::fprintf(stderr, "pipewright-worker: %s\n", text.c_str());
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

/// The rank's number as its launcher says before MPI does; empty without a launcher.
std::string launched_as() {
  const std::string rank = variable("OMPI_COMM_WORLD_RANK");
  return rank.empty() ? variable("SLURM_PROCID") : rank;
}

/// How large the world has to be, and who says so.
struct ExpectedSize {
  std::int64_t ranks = 0;  // 0: nobody
  std::string said_by;
};

/// To be asked before MPI begins, which sets some of these variables itself.
ExpectedSize expected_size(const Options& options) {
  if (options.expect_ranks > 0) return {options.expect_ranks, "--expect-ranks"};
  // What mpirun starts in an allocation sees the variables of mpirun's own step.
  if (!variable("OMPI_COMM_WORLD_SIZE").empty() || variable("SLURM_STEP_ID").empty()) return {};
  const auto tasks = parse_integer(variable("SLURM_STEP_NUM_TASKS"));
  return {tasks.value_or(0), "SLURM_STEP_NUM_TASKS of this srun"};
}

/// A launcher and an MPI that do not know each other start as many worlds of one rank.
std::optional<std::string> wrong_size(const ExpectedSize& expected, int size) {
  if (expected.ranks == 0 || expected.ranks == size) return std::nullopt;
  return "MPI's world has " + std::to_string(size) + (size == 1 ? " rank" : " ranks") + ", but " +
         expected.said_by + " is " + std::to_string(expected.ranks) +
         ": start it with srun --mpi=pmix, or with mpirun inside the allocation (each of the ranks "
         "may be a world of its own)";
}

RankInfo me(const MpiSession& mpi) {
  return {static_cast<std::uint32_t>(mpi.rank()), MpiSession::host(), getpid()};
}

PoolHello hello_of(const std::string& given_name, std::vector<RankInfo> ranks) {
  PoolHello hello;
  hello.name =
      given_name.empty() ? MpiSession::host() + "-" + std::to_string(getpid()) : given_name;
  hello.ranks = std::move(ranks);
  hello.program_version = program_version();
  hello.program_commit = program_commit();
  hello.cpu_type = cpu_type();
  hello.slurm_job = variable("SLURM_JOB_ID");
  std::random_device random;
  hello.instance = std::to_string(random()) + "-" + std::to_string(random());
  return hello;
}

/// Where the daemon is now: where it says in its data folder, if that is known.
DaemonAddress address_now(const Options& options) {
  std::string url = options.daemon;
  if (std::ifstream file(options.daemon_file); file) {
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    url = value_from_json(text).at("url").as_text();
  }
  return daemon_address(url, options.token_file, options.tls_ca);
}

int serve(const Options& options, std::vector<RankInfo> ranks, Transport& transport) {
  static constexpr std::chrono::seconds connect_deadline{30};
  const std::filesystem::path spool =
      std::filesystem::temp_directory_path() / ("pipewright-pool-" + std::to_string(getpid()));
  const PoolHello hello = hello_of(options.name, ranks);
  const Connect connect = [&](std::vector<RunId> runs) {
    PoolHello again = hello;
    again.runs = std::move(runs);
    return std::make_unique<DaemonLink>(address_now(options), again, connect_deadline);
  };
  auto link = connect({});
  link->await_welcome();
  say("pool '" + hello.name + "' of " + std::to_string(transport.size()) +
      " ranks is attached to " + options.daemon);
  const PoolOptions pool{connect,     say, spool.string(), std::move(ranks), options.silence_max(),
                         kill_follows};
  const PoolEnd end = serve_pool(transport, std::move(link), pool, stop_asked);
  std::error_code ignored;
  std::filesystem::remove_all(spool, ignored);
  say("pool '" + hello.name + "' ends: " + end.reason);
  if (!end.in_order) MpiSession::abort(1);
  return 0;
}

int run(const Options& options, Transport& transport) {
  JobFile file = JobFile::read(options.job_file);
  for (const std::string& set : options.sets) file.set(set);
  const StandaloneResult result = run_standalone(transport, file.checked(), options.out, {});
  if (result.outcome != RunOutcome::succeeded) {
    say("the run failed: " + result.message);
    return 1;
  }
  if (!result.message.empty()) say("the run " + result.message);
  return 0;
}

/// Rank 0; the other ranks wait for what it says.
int coordinate(const Options& options, const MpiSession& mpi, Transport& transport) {
  int status = 0;
  std::vector<RankInfo> ranks = gather_ranks(transport, me(mpi), stop_asked);
  try {
    status = options.daemon.empty() ? run(options, transport)
                                    : serve(options, std::move(ranks), transport);
  } catch (const ConfigError& error) {
    say(error.what());
    status = 2;
  } catch (const Error& error) {
    say(error.what());
    status = 1;
  }
  shut_down_ranks(transport);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"The MPI program that a pool of Pipewright is made of."};
  Options options;
  add_options(app, options);
  // Of all ranks only the first says what is wrong (or the help).
  const std::string rank = launched_as();
  const bool speaks = rank.empty() || rank == "0";
  try {
    app.parse(argc, argv);
    if (options.daemon.empty() && options.job_file.empty()) {
      throw CLI::ValidationError(
          "give --daemon URL --token-file FILE, or --run JOB.yaml --out DIR");
    }
  } catch (const CLI::ParseError& error) {
    if (!speaks) return error.get_exit_code() == 0 ? 0 : 2;
    return app.exit(error) == 0 ? 0 : 2;
  }
  const ExpectedSize expected = expected_size(options);
  if (!options.daemon.empty()) {
    for (const int number : {SIGTERM, SIGINT, SIGUSR1}) std::signal(number, on_signal);
  }
  MpiSession mpi(&argc, &argv);
  if (const auto why = wrong_size(expected, mpi.size())) {
    if (speaks) say(*why);
    return 2;
  }
  const auto transport = mpi.transport();
  try {
    if (mpi.rank() != 0) {
      serve_rank(*transport, me(mpi), stop_asked, options.silence_max());
      return 0;
    }
    return coordinate(options, mpi, *transport);
  } catch (const std::exception& error) {
    // A fault between ranks: the others may wait for this one, so the world ends.
    say("rank " + std::to_string(mpi.rank()) + ": " + error.what());
    MpiSession::abort(1);
  }
}
