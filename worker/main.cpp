// pipewright-worker: the MPI program that a pool is made of. Rank 0 coordinates, all ranks host
// stages.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "proto/codec/job_file.hpp"
#include "proto/codec/provenance.hpp"
#include "worker/mpi/mpi_transport.hpp"
#include "worker/runtime/pool.hpp"

namespace {

using namespace pipewright;

std::atomic<bool> stop_asked{false};
void on_signal(int) {
  stop_asked = true;
}

struct Options {
  std::string daemon, token_file, name, job_file, out;
  std::vector<std::string> sets;
};

void add_options(CLI::App& app, Options& options) {
  auto* daemon = app.add_option("--daemon", options.daemon,
                                "Attach to the daemon at this address (http://127.0.0.1:7070)");
  auto* token = app.add_option("--token-file", options.token_file, "File with the daemon's token");
  auto* name = app.add_option("--name", options.name, "Name of the pool (default: HOST-PID)");
  auto* run = app.add_option("--run", options.job_file, "Without a daemon: run this job file");
  auto* out = app.add_option("--out", options.out, "Folder for the files of --run");
  auto* set = app.add_option("--set", options.sets, "key=value, changes a key of --run's job file")
                  ->expected(1)
                  ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  daemon->needs(token)->excludes(run);
  token->needs(daemon);
  name->needs(daemon);
  run->needs(out);
  out->needs(run);
  set->needs(run);
  app.footer(
      "Examples:\n"
      "  mpirun -n 4 pipewright-worker --daemon http://127.0.0.1:7070 --token-file DIR/token\n"
      "  mpirun -n 4 pipewright-worker --run job.yaml --out results\n"
      "`pipewright up` starts a pool on this machine by itself.");
  app.set_version_flag("--version", std::string(program_version()));
}

void say(const std::string& text) {
  std::fprintf(stderr, "pipewright-worker: %s\n", text.c_str());
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
  return hello;
}

int serve(const Options& options, std::vector<RankInfo> ranks, Transport& transport) {
  static constexpr std::chrono::seconds connect_deadline{30};
  const std::filesystem::path spool =
      std::filesystem::temp_directory_path() / ("pipewright-pool-" + std::to_string(getpid()));
  const PoolHello hello = hello_of(options.name, std::move(ranks));
  PoolEnd end;
  {
    DaemonLink link(daemon_address(options.daemon, options.token_file), hello, connect_deadline);
    say("pool '" + hello.name + "' of " + std::to_string(transport.size()) +
        " ranks is attached to " + options.daemon);
    end = serve_pool(transport, link, spool.string(), stop_asked);
  }
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
  std::vector<RankInfo> ranks = gather_ranks(transport, me(mpi));
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
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  const bool speaks = rank == nullptr || std::string_view(rank) == "0";
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
  MpiSession mpi(&argc, &argv);
  const auto transport = mpi.transport();
  try {
    if (mpi.rank() != 0) {
      serve_rank(*transport, me(mpi));
      return 0;
    }
    std::signal(SIGTERM, on_signal);
    std::signal(SIGINT, on_signal);
    return coordinate(options, mpi, *transport);
  } catch (const std::exception& error) {
    // A fault between ranks: the others may wait for this one, so the world ends.
    say("rank " + std::to_string(mpi.rank()) + ": " + error.what());
    MpiSession::abort(1);
  }
}
