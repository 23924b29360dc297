#include <exception>
#include <iostream>

#include "client/cli/command.hpp"
#include "core/base/error.hpp"

namespace pipewright::cli {

Program::Program()
    : app_("Pipeline-parallel training under injected latency: plan, run, submit and watch jobs.",
           "pipewright") {
  app_.require_subcommand(1);
  app_.set_version_flag("--version", "pipewright " PIPEWRIGHT_VERSION);
  app_.footer("Each command has a --help with an example.");
}

CLI::App* Program::add_command(const std::string& name, const std::string& summary,
                               const std::string& example) {
  CLI::App* command = app_.add_subcommand(name, summary);
  command->footer("Example:\n  " + example);
  return command;
}

void Program::on(CLI::App* command, std::function<int()> action) {
  command->callback([this, action = std::move(action)] { action_ = action; });
}

int Program::run(int argc, char** argv) {
  try {
    app_.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app_.exit(error) == 0 ? exit_ok : exit_user_error;
  }
  try {
    return action_();
  } catch (const ConfigError& error) {
    std::cerr << "pipewright: " << error.what() << '\n';
    return exit_user_error;
  } catch (const DataError& error) {
    std::cerr << "pipewright: " << error.what() << '\n';
    return exit_user_error;
  } catch (const std::exception& error) {
    std::cerr << "pipewright: " << error.what() << '\n';
    return exit_failure;
  }
}

}  // namespace pipewright::cli
