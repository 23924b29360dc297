// Completion scripts for shells, from the same commands and options as the help.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace pipewright::cli {

/// What can stand for a value.
enum class Completes { nothing, files, folders, jobs, commands, choices };

struct OptionWords {
  std::vector<std::string> names;  // "--json", "-h"; none for a positional
  std::string help;                // its first sentence
  bool takes_value = false;
  bool repeats = false;
  Completes value = Completes::nothing;
  std::vector<std::string> choices;
};

struct CommandWords {
  std::string path;  // "token create"; "" of the program
  std::string help;
  std::vector<std::string> subcommands;
  std::vector<OptionWords> options;
  std::vector<OptionWords> positionals;
};

/// The program first, each command before its subcommands.
std::vector<CommandWords> words_of(const CLI::App& app);

std::string bash_completion(const std::vector<CommandWords>& commands);
std::string zsh_completion(const std::vector<CommandWords>& commands);

}  // namespace pipewright::cli
