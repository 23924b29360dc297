// How the commands of `pipewright` register. A command is an `add_NAME(Program&)` in a .cpp of its
// own (or of a small group); main.cpp lists them by hand in the order in which `--help` shows them.
//
//   void add_list(Program& program) {
//     struct Options { ... };
//     auto options = std::make_shared<Options>();
//     CLI::App* command = program.add_command("list", "Show the jobs", "pipewright list --state
//     RUNNING"); command->add_option("--limit", options->limit, "..."); program.on(command,
//     [options] { return list_jobs(*options); });   // gives the exit status
//   }
//
// Errors are thrown: ConfigError and DataError end the program with exit status 2, every other
// exception with 1. Standard output holds the answer alone, standard error the rest.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace pipewright::cli {

inline constexpr int exit_ok = 0;
inline constexpr int exit_failure = 1;        // also: the job failed
inline constexpr int exit_user_error = 2;     // bad arguments, bad job file, no such job
inline constexpr int exit_cancelled = 3;      // the job was cancelled
inline constexpr int exit_interrupted = 130;  // as shells say it of SIGINT

class Program {
 public:
  Program();

  CLI::App& app() { return app_; }
  /// A subcommand whose help ends in the example.
  CLI::App* add_command(const std::string& name, const std::string& summary,
                        const std::string& example);
  /// What the command does once the whole line has been parsed; gives the exit status.
  void on(CLI::App* command, std::function<int()> action);
  /// Parses and runs; gives the exit status of the program.
  int run(int argc, char** argv);

 private:
  CLI::App app_;
  std::function<int()> action_;
};

// Talk to a daemon.
void add_up(Program& program);
void add_down(Program& program);
void add_submit(Program& program);
void add_watch(Program& program);
void add_top(Program& program);
void add_list(Program& program);
void add_show(Program& program);
void add_cancel(Program& program);
void add_delete(Program& program);
void add_wait(Program& program);
void add_log(Program& program);
void add_export(Program& program);
void add_pools(Program& program);
void add_pool(Program& program);
void add_plot(Program& program);
void add_web(Program& program);
void add_token(Program& program);

// Need no daemon: in offline/.
void add_plan(Program& program);
void add_run(Program& program);
void add_validate(Program& program);
void add_replay(Program& program);
void add_sample(Program& program);
void add_help(Program& program);
void add_completion(Program& program);
void add_man(Program& program);

}  // namespace pipewright::cli
