#include "client/cli/pages/completion.hpp"

#include <algorithm>

#include "core/base/text.hpp"

namespace pipewright::cli {

namespace {

std::string first_sentence(const std::string& text) {
  const std::size_t end = std::min({text.find(". "), text.find("; "), text.find(": ")});
  std::string out = text.substr(0, end);
  std::replace(out.begin(), out.end(), '\n', ' ');
  return out;
}

/// CLI11 has the choices of a value in the name of its type: "TEXT:{rows,csv}".
std::vector<std::string> choices_of(const std::string& type) {
  const std::size_t open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return {};
  std::vector<std::string> out;
  const std::string_view list = std::string_view(type).substr(open + 1, close - open - 1);
  for (const std::string_view choice : split(list, ',')) out.emplace_back(choice);
  return out;
}

/// By the word that stands for it in the help.
Completes kind_of(const std::string& word) {
  if (word == "FILE" || word == "JOB" || word == "SOURCE") return Completes::files;
  if (word == "DIR") return Completes::folders;
  if (word == "ID") return Completes::jobs;
  return word == "TOPIC" || word == "COMMAND" ? Completes::commands : Completes::nothing;
}

OptionWords option_words(const CLI::Option& option) {
  OptionWords words;
  for (const std::string& name : option.get_lnames()) words.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) words.names.push_back("-" + name);
  words.help = first_sentence(option.get_description());
  words.takes_value = option.get_items_expected_max() > 0;
  words.repeats = option.get_items_expected_max() > 1;
  words.choices = choices_of(option.get_type_name());
  const bool positional = words.names.empty();
  words.value = !words.choices.empty() ? Completes::choices
                : positional           ? kind_of(option.get_name(true))
                                       : kind_of(option.get_type_name());
  return words;
}

void append(std::vector<CommandWords>& all, const CLI::App& app, const std::string& path) {
  CommandWords words;
  words.path = path;
  words.help = first_sentence(app.get_description());
  for (const CLI::Option* option : app.get_options()) {
    const bool positional = option->get_positional();
    (positional ? words.positionals : words.options).push_back(option_words(*option));
  }
  const auto subcommands = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* command : subcommands) words.subcommands.push_back(command->get_name());
  all.push_back(std::move(words));
  for (const CLI::App* command : subcommands) {
    append(all, *command, path.empty() ? command->get_name() : path + " " + command->get_name());
  }
}

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string bash_action(const OptionWords& words) {
  switch (words.value) {
    case Completes::files:
      return "_pipewright_files";
    case Completes::folders:
      return "_pipewright_files -d";
    case Completes::jobs:
      return "_pipewright_words \"$(_pipewright_jobs)\"";
    case Completes::commands:
      return "_pipewright_words \"${_pipewright_commands[@]}\"";
    case Completes::choices:
      return "_pipewright_words " + quoted(join(words.choices, " "));
    case Completes::nothing:
      break;
  }
  return ":";
}

constexpr const char* bash_begin =
    R"(# bash completion for pipewright; made by `pipewright completion bash`

_pipewright_words() {
  mapfile -t COMPREPLY < <(compgen -W "$*" -- "$cur")
}

_pipewright_files() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen "${1:--f}" -- "$cur")
}

# Ids of the newest jobs, of the daemon that the words so far name.
_pipewright_jobs() {
  local -a where=()
  local i
  for ((i = 1; i < COMP_CWORD - 1; i++)); do
    case ${COMP_WORDS[i]} in
    --data-dir | --url | --token-file | --tls-ca) where+=("${COMP_WORDS[i]}" "${COMP_WORDS[i + 1]}") ;;
    esac
  done
  "${COMP_WORDS[0]}" list "${where[@]}" 2>/dev/null | while read -r id _; do
    case $id in [0-9]*) printf '%s\n' "$id" ;; esac
  done
}

)";

constexpr const char* zsh_begin = R"zsh(#compdef pipewright
# zsh completion for pipewright; made by `pipewright completion zsh`

# Ids of the newest jobs with their lines of `pipewright list`.
_pipewright_jobs() {
  local -a jobs
  jobs=(${${${(f)"$(_call_program jobs pipewright list 2>/dev/null)"}[2,-1]}## #})
  jobs=(${jobs/ ##/:})
  _describe -V job jobs
}

)zsh";

/// For the inside of '...[...]...' of zsh's _arguments.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out;
}

std::string zsh_action(const OptionWords& words) {
  switch (words.value) {
    case Completes::files:
      return "_files";
    case Completes::folders:
      return "_files -/";
    case Completes::jobs:
      return "_pipewright_jobs";
    case Completes::commands:
      return "_pipewright_commands";
    case Completes::choices:
      return "(" + join(words.choices, " ") + ")";
    case Completes::nothing:
      break;
  }
  return " ";
}

std::string zsh_function(const std::string& path) {
  std::string name = "_pipewright";
  for (const char c : path.empty() ? path : " " + path) name += c == ' ' || c == '-' ? '_' : c;
  return path.empty() ? name : name + "_command";
}

void append_zsh_arguments(std::string& out, const CommandWords& command) {
  out += "  _arguments -s -S";
  for (const OptionWords& option : command.options) {
    for (const std::string& name : option.names) {
      out += " \\\n    '*" + name + "[" + zsh_text(option.help) + "]" +
             (option.takes_value ? ":value:" + zsh_action(option) : "") + "'";
    }
  }
  for (const OptionWords& positional : command.positionals) {
    out += std::string(" \\\n    '") + (positional.repeats ? "*" : "") + ":" +
           zsh_text(positional.help) + ":" + zsh_action(positional) + "'";
  }
}

}  // namespace

std::vector<CommandWords> words_of(const CLI::App& app) {
  std::vector<CommandWords> all;
  append(all, app, "");
  return all;
}

std::string bash_completion(const std::vector<CommandWords>& commands) {
  std::string out = bash_begin;
  out += "_pipewright_commands=(" + join(commands.front().subcommands, " ") + ")\n\n";
  out +=
      "_pipewright() {\n  local cur=${COMP_WORDS[COMP_CWORD]} prev= path= i\n"
      "  [ \"$COMP_CWORD\" -gt 0 ] && prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
      "  # bash takes --option=value apart\n"
      "  [ \"$cur\" = = ] && cur=\n"
      "  [ \"$prev\" = = ] && prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
      "  COMPREPLY=()\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case \"$path ${COMP_WORDS[i]}\" in\n";
  std::string paths;
  for (const CommandWords& command : commands) {
    if (!command.path.empty()) paths += (paths.empty() ? "    ' " : " | ' ") + command.path + "'";
  }
  out += paths + ") path=\"$path ${COMP_WORDS[i]}\" ;;\n    esac\n  done\n  case $path in\n";
  for (const CommandWords& command : commands) {
    out += "  " + (command.path.empty() ? std::string("''") : "' " + command.path + "'") + ")\n";
    out += "    case $prev in\n";
    std::vector<std::string> names;
    for (const OptionWords& option : command.options) {
      names.insert(names.end(), option.names.begin(), option.names.end());
      if (!option.takes_value) continue;
      out += "    " + join(option.names, " | ") + ") " + bash_action(option) + "; return ;;\n";
    }
    out += "    esac\n    case $cur in\n    -*) _pipewright_words " + quoted(join(names, " ")) +
           "; return ;;\n    esac\n";
    if (!command.subcommands.empty()) {
      out += "    _pipewright_words " + quoted(join(command.subcommands, " ")) + "\n";
    } else if (!command.positionals.empty()) {
      out += "    " + bash_action(command.positionals.front()) + "\n";
    }
    out += "    ;;\n";
  }
  return out + "  esac\n}\n\ncomplete -F _pipewright pipewright\n";
}

std::string zsh_completion(const std::vector<CommandWords>& commands) {
  std::string out = zsh_begin;
  for (const CommandWords& command : commands) {
    if (command.subcommands.empty()) continue;
    const std::string function = zsh_function(command.path);
    out += (command.path.empty() ? "_pipewright_commands" : function + "s") +
           "() {\n  local -a commands\n  commands=(\n";
    for (const std::string& name : command.subcommands) {
      const std::string path = command.path.empty() ? name : command.path + " " + name;
      const auto of = std::find_if(commands.begin(), commands.end(),
                                   [&](const CommandWords& one) { return one.path == path; });
      out += "    '" + name + ":" + zsh_text(of->help) + "'\n";
    }
    out += "  )\n  _describe command commands\n}\n\n";
  }
  for (auto command = commands.rbegin(); command != commands.rend(); ++command) {
    const std::string function = zsh_function(command->path);
    out += function + "() {\n";
    if (command->subcommands.empty()) {
      append_zsh_arguments(out, *command);
      out += "\n}\n\n";
      continue;
    }
    out += "  local context state state_descr line\n  typeset -A opt_args\n";
    append_zsh_arguments(out, *command);
    const std::string list = command->path.empty() ? "_pipewright_commands" : function + "s";
    out += " \\\n    '1:command:" + list + "' '*::argument:->argument'\n";
    out += "  [[ $state == argument ]] || return\n  case $line[1] in\n";
    for (const std::string& name : command->subcommands) {
      out += "  " + name + ") " +
             zsh_function(command->path.empty() ? name : command->path + " " + name) + " ;;\n";
    }
    out += "  esac\n}\n\n";
  }
  return out +
         "if [ \"$funcstack[1]\" = _pipewright ]; then\n  _pipewright \"$@\"\nelse\n"
         "  compdef _pipewright pipewright\nfi\n";
}

}  // namespace pipewright::cli
