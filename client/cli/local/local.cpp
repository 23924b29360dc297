// up, down: a daemon and one local pool on this machine.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <thread>

#include "client/cli/command.hpp"
#include "client/cli/local/process.hpp"
#include "client/cli/net/api.hpp"
#include "proto/codec/local_pool.hpp"

namespace pipewright::cli {

namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  EndpointFlags endpoint;  // only its data folder is used
  int ranks = 4;
  bool ranks_given = false;
  int port = 7070;
  bool port_given = false;
  int timeout_seconds = 60;
  bool json = false;
};

/// A daemon that was started here and has to come up.
struct Start {
  pid_t pid = 0;
  fs::path log;
  std::uintmax_t log_begin = 0;
};

const PoolInfo* local_pool(const PoolList& list) {
  const auto at = std::find_if(list.pools.begin(), list.pools.end(), [](const PoolInfo& pool) {
    return pool.local && pool.state == "attached";
  });
  return at == list.pools.end() ? nullptr : &*at;
}

std::string log_text(const Start& start) {
  const std::string lines = tail(start.log, start.log_begin, 15);
  return lines.empty() ? "; " + start.log.string() + " says nothing"
                       : "; the end of " + start.log.string() + ":\n" + lines;
}

/// One look at whether the daemon of the data folder answers and its pool is attached.
std::optional<PoolList> ready_pools(const Options& options, std::string& missing) {
  try {
    const auto record = read_record(data_dir_of(options.endpoint));
    if (!record || !daemon_alive(record->pid)) {
      missing = "the daemon has not written daemon.json";
      return std::nullopt;
    }
    const Api api(find_daemon({.data_dir = data_dir_of(options.endpoint).string()}));
    api.health(std::chrono::seconds{5});
    PoolList list = api.pools();
    if (local_pool(list) != nullptr) return list;
    missing = "its local pool has not attached";
  } catch (const Error& error) {
    missing = error.what();
  }
  return std::nullopt;
}

PoolList wait_until_ready(const Options& options, const std::optional<Start>& start) {
  const auto deadline = Clock::now() + std::chrono::seconds(options.timeout_seconds);
  std::string missing;
  for (;;) {
    if (start) {
      if (const auto end = ended_child(start->pid)) {
        throw Error("the daemon ended at once (" + *end + ")" + log_text(*start));
      }
    }
    if (auto list = ready_pools(options, missing)) return *std::move(list);
    if (Clock::now() > deadline) {
      throw Error("not ready after " + std::to_string(options.timeout_seconds) + " s: " + missing +
                  (start ? log_text(*start) : std::string()));
    }
    // Neither the file nor the pool announces itself to us: look again.
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
  }
}

void check_port(int port) {
  if (port_is_free(port)) return;
  std::string who = "another program";
  try {
    const Endpoint other{
        .host = "127.0.0.1", .port = std::to_string(port), .token = "", .found_by = ""};
    Api(other).health(std::chrono::seconds{2});
    who = "a pipewright daemon with another data folder";
  } catch (const Error&) {
    // Not one of ours.
  }
  throw ConfigError("port " + std::to_string(port) + " of 127.0.0.1 is in use by " + who +
                    ": give --port N, or --port 0 for any that is free");
}

Start start_daemon(const Options& options, const fs::path& data_dir) {
  const fs::path program = own_folder() / "pipewrightd";
  if (!fs::exists(program)) {
    throw Error("there is no pipewrightd beside this program, in " + own_folder().string());
  }
  check_port(options.port);
  Start start{.log = data_dir / "daemon.log"};
  if (fs::exists(start.log)) start.log_begin = fs::file_size(start.log);
  start.pid =
      start_detached({program.string(), "--data-dir", data_dir.string(), "--port",
                      std::to_string(options.port), "--ranks", std::to_string(options.ranks)},
                     start.log);
  return start;
}

void say_differences(const Options& options, const Endpoint& endpoint, std::size_t ranks) {
  if (options.ranks_given && static_cast<std::size_t>(options.ranks) != ranks) {
    std::cerr << "it has " << ranks << " ranks, not " << options.ranks
              << ": `pipewright down` first to change that\n";
  }
  if (options.port_given && options.port != 0 && std::to_string(options.port) != endpoint.port) {
    std::cerr << "it listens on port " << endpoint.port << ", not " << options.port
              << ": `pipewright down` first to change that\n";
  }
}

int up(const Options& options) {
  const fs::path data_dir = data_dir_of(options.endpoint);
  fs::create_directories(data_dir);
  fs::permissions(data_dir, fs::perms::group_write | fs::perms::others_all,
                  fs::perm_options::remove);
  const FolderLock lock(data_dir);
  const auto record = read_record(data_dir);
  const bool there = record && daemon_alive(record->pid);
  std::optional<Start> start;
  if (!there) {
    // A record of a daemon that has gone must not be taken for that of the new one.
    fs::remove(data_dir / "daemon.json");
    start = start_daemon(options, data_dir);
  }
  const PoolList pools = wait_until_ready(options, start);
  const std::size_t ranks = local_pool(pools)->rank_hosts.size();
  const Endpoint endpoint = find_daemon({.data_dir = data_dir.string()});
  const std::int64_t pid = read_record(data_dir)->pid;
  const std::string page = Api(endpoint).page_link();
  if (options.json) {
    Value answer = Value::map();
    answer.set("url", endpoint.url());
    answer.set("pid", pid);
    answer.set("ranks", static_cast<std::int64_t>(ranks));
    answer.set("data_dir", data_dir.string());
    answer.set("started", !there);
    if (!page.empty()) answer.set("page", page);
    std::cout << to_json(answer, -1) << std::endl;
  } else {
    std::cout << (there ? "already up: " : "up: ") << endpoint.url() << ", " << ranks
              << " ranks, data in " << data_dir.string() << std::endl;
    if (!page.empty()) std::cout << "page: " << page << std::endl;
  }
  if (there) say_differences(options, endpoint, ranks);
  return exit_ok;
}

/// The pool of a daemon that was killed waits for the next one for a while.
void end_orphan(const Options& options, const fs::path& data_dir) {
  const auto pool = read_local_pool(data_dir);
  if (!pool || !is_there(*pool)) return;
  const auto end = terminate(pool->pid, std::chrono::seconds(options.timeout_seconds));
  if (end == Ended::still_there) {
    throw Error("the local pool, process " + std::to_string(pool->pid) +
                ", was told to end but is still there after " +
                std::to_string(options.timeout_seconds) + " s; see " +
                (data_dir / "pool-local.log").string());
  }
}

int down(const Options& options) {
  const fs::path data_dir = data_dir_of(options.endpoint);
  const auto record = read_record(data_dir);
  const bool there = record && daemon_alive(record->pid);
  if (there) {
    const auto end = terminate(record->pid, std::chrono::seconds(options.timeout_seconds));
    if (end == Ended::still_there) {
      throw Error("the daemon, process " + std::to_string(record->pid) +
                  ", was told to end but is "
                  "still there after " +
                  std::to_string(options.timeout_seconds) + " s; see " +
                  (data_dir / "daemon.log").string());
    }
  }
  end_orphan(options, data_dir);
  if (record) fs::remove(data_dir / "daemon.json");
  if (options.json) {
    Value answer = Value::map();
    answer.set("data_dir", data_dir.string());
    answer.set("stopped", there);
    std::cout << to_json(answer, -1) << '\n';
  } else {
    std::cout << (there ? "down" : "no daemon was running") << '\n';
  }
  return exit_ok;
}

void add_local_flags(CLI::App* command, Options& options) {
  command
      ->add_option("--data-dir", options.endpoint.data_dir,
                   "Data folder: jobs, token, log (also PIPEWRIGHT_DATA_DIR; default: "
                   "$XDG_DATA_HOME/pipewright or ~/.local/share/pipewright)")
      ->type_name("DIR");
  command->add_option("--timeout", options.timeout_seconds, "Seconds to wait at most")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  command->add_flag("--json", options.json, "One JSON object instead of text");
}

}  // namespace

void add_up(Program& program) {
  CLI::App* command = program.add_command(
      "up",
      "Start a cluster on this machine: a daemon and a local pool of MPI ranks. Returns once the "
      "pool is attached; a daemon that runs already is used as it is",
      "pipewright up --ranks 4 && pipewright submit examples/pipedream.yaml --watch");
  auto options = std::make_shared<Options>();
  CLI::Option* ranks = command->add_option("--ranks", options->ranks, "MPI ranks of the pool")
                           ->check(CLI::Range(1, 4096))
                           ->capture_default_str();
  CLI::Option* port =
      command->add_option("--port", options->port, "Port on 127.0.0.1; 0 for any that is free")
          ->check(CLI::Range(0, 65535))
          ->capture_default_str();
  add_local_flags(command, *options);
  program.on(command, [options, ranks, port] {
    options->ranks_given = ranks->count() > 0;
    options->port_given = port->count() > 0;
    return up(*options);
  });
}

void add_down(Program& program) {
  CLI::App* command = program.add_command(
      "down", "End the daemon that `up` started, and its pool; jobs stay in the data folder",
      "pipewright down");
  auto options = std::make_shared<Options>();
  add_local_flags(command, *options);
  program.on(command, [options] { return down(*options); });
}

}  // namespace pipewright::cli
