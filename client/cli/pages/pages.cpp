// completion, man: what a shell and `man` read, made from the commands' own help.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "client/cli/command.hpp"
#include "client/cli/local/process.hpp"
#include "client/cli/pages/completion.hpp"
#include "client/cli/pages/man_page.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace pipewright::cli {

namespace fs = std::filesystem;

namespace {

struct Options {
  std::string topic, out;
};

void write_file(const fs::path& path, const std::string& text) {
  fs::create_directories(path.has_parent_path() ? path.parent_path() : fs::path("."));
  std::ofstream file(path, std::ios::binary);
  if (!(file << text).flush()) throw Error(path.string() + ": cannot be written");
}

int print_completion(Program& program, const Options& options) {
  const auto words = words_of(program.app());
  const std::string text = options.topic == "bash" ? bash_completion(words) : zsh_completion(words);
  if (options.out.empty()) {
    std::cout << text;
  } else {
    write_file(options.out, text);
  }
  return exit_ok;
}

/// The page of a command ("token create"), of the program ("") or of one of those beside it.
struct Page {
  std::string name;
  std::string help;
};

/// `before`: what is typed before the command's own name.
void append_pages(std::vector<Page>& pages, CLI::App& app, const std::string& name,
                  const std::string& before = {}) {
  const std::string typed = before.empty() ? app.get_name() : before + " " + app.get_name();
  // help() of the program is that of the command that was given.
  pages.push_back({name, app.get_formatter()->make_help(&app, typed, CLI::AppFormatMode::Normal)});
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    append_pages(pages, *command, name + "-" + command->get_name(), typed);
  }
}

std::vector<Page> all_pages(Program& program) {
  std::vector<Page> pages;
  append_pages(pages, program.app(), "pipewright");
  for (const std::string other : {"pipewrightd", "pipewright-worker"}) {
    const fs::path path = own_folder() / other;
    if (!fs::exists(path)) continue;  // built without MPI
    const ProgramEnd end = run_program({path.string(), "--help"});
    if (end.status != 0) throw Error(path.string() + " --help ends with an error");
    pages.push_back({other, end.out});
  }
  return pages;
}

std::string text_of(const Page& page) {
  const bool is_program = page.name == "pipewright";
  return man_page(page.name, page.help, PIPEWRIGHT_VERSION,
                  is_program ? std::vector<std::string>{"pipewrightd", "pipewright-worker"}
                             : std::vector<std::string>{"pipewright"});
}

int print_man(Program& program, const Options& options) {
  const std::vector<Page> pages = all_pages(program);
  if (!options.out.empty()) {
    for (const Page& page : pages) {
      write_file(fs::path(options.out) / (page.name + ".1"), text_of(page));
    }
    return exit_ok;
  }
  std::vector<std::string> names;
  for (const Page& page : pages) {
    const bool wanted = page.name == options.topic || page.name == "pipewright-" + options.topic ||
                        (options.topic.empty() && page.name == "pipewright");
    if (wanted) {
      std::cout << text_of(page);
      return exit_ok;
    }
    names.push_back(page.name);
  }
  throw ConfigError("there is no page on '" + options.topic + "'" +
                    suggest("pipewright-" + options.topic, names));
}

}  // namespace

void add_completion(Program& program) {
  CLI::App* command = program.add_command(
      "completion", "Print a shell's script for completing commands, options, files and job ids",
      "source <(pipewright completion bash)\n"
      "  pipewright completion zsh > ~/.zfunc/_pipewright");
  auto options = std::make_shared<Options>();
  command->add_option("SHELL", options->topic, "bash or zsh")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}));
  command->add_option("--out", options->out, "Write to a file instead of standard output")
      ->type_name("FILE");
  program.on(command, [&program, options] { return print_completion(program, *options); });
}

void add_man(Program& program) {
  CLI::App* command = program.add_command("man", "Print a manual page, as `man` reads it",
                                          "pipewright man watch | man -l -\n"
                                          "  pipewright man pool-start");
  auto options = std::make_shared<Options>();
  command->add_option("COMMAND", options->topic,
                      "A command, pipewrightd or pipewright-worker; without it the program's page");
  command->add_option("--out", options->out, "Write all pages into a folder")->type_name("DIR");
  program.on(command, [&program, options] { return print_man(program, *options); });
}

}  // namespace pipewright::cli
