// token create, list, revoke: who may use a daemon.
#include <unistd.h>

#include <chrono>
#include <iostream>

#include "client/cli/command.hpp"
#include "client/cli/net/api.hpp"
#include "client/cli/view/screen.hpp"
#include "client/cli/view/table.hpp"
#include "client/cli/view/text.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace pipewright::cli {
namespace {

struct Options {
  EndpointFlags endpoint;
  bool json = false;
  std::string name, role;
  std::string expires;  // "30d"
  std::vector<std::string> names;
};

std::int64_t now_unix_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// "30d", "12h", "90min".
std::int64_t lifetime_ms(const std::string& text) {
  static constexpr std::pair<std::string_view, std::int64_t> units[] = {
      {"d", 86'400'000}, {"h", 3'600'000}, {"min", 60'000}, {"s", 1000}};
  for (const auto& [unit, ms] : units) {
    if (!text.ends_with(unit)) continue;
    const auto count =
        parse_integer(trim(std::string_view(text).substr(0, text.size() - unit.size())));
    if (count && *count > 0 && *count <= 100 * 366 * std::int64_t{86'400'000} / ms)
      return *count * ms;
    break;
  }
  throw ConfigError("--expires " + text +
                    ": is not a time like 30d, 12h, 90min or 600s (up to 100 years)");
}

std::string time_text(std::int64_t unix_ms, const char* none) {
  return unix_ms == 0 ? none : format_local_time(unix_ms);
}

int create_token(const Options& options) {
  TokenRequest request{options.name, options.role, 0};
  if (!options.expires.empty()) {
    request.expires_unix_ms = now_unix_ms() + lifetime_ms(options.expires);
  }
  const TokenReply reply = Api(find_daemon(options.endpoint)).create_token(request);
  if (options.json) {
    std::cout << encode(reply, WireFormat::json) << '\n';
    return exit_ok;
  }
  std::cout << reply.token << '\n';
  std::cerr << "token '" << reply.info.name << "' (" << reply.info.role
            << "); the daemon does not know it itself and will not show it again\n";
  return exit_ok;
}

int list_tokens(const Options& options) {
  const TokenList list = Api(find_daemon(options.endpoint)).tokens();
  if (options.json) {
    std::cout << encode(list, WireFormat::json) << '\n';
    return exit_ok;
  }
  std::vector<std::vector<std::string>> rows;
  for (const TokenInfo& token : list.tokens) {
    const bool expired = token.expires_unix_ms != 0 && token.expires_unix_ms <= now_unix_ms();
    rows.push_back({printable(token.name), printable(token.role),
                    time_text(token.created_unix_ms, "-"), time_text(token.last_used_unix_ms, "-"),
                    time_text(token.expires_unix_ms, "never") + (expired ? " (expired)" : "")});
  }
  std::cout << format_table({{"NAME"}, {"ROLE"}, {"CREATED"}, {"LAST USED"}, {"EXPIRES"}}, rows,
                            table_columns(STDOUT_FILENO));
  return exit_ok;
}

int revoke_tokens(const Options& options) {
  const Api api(find_daemon(options.endpoint));
  for (const std::string& name : options.names) {
    const TokenInfo info = api.revoke_token(name);
    if (options.json) {
      std::cout << encode(info, WireFormat::json) << '\n';
    } else {
      std::cout << "token '" << info.name << "' is revoked\n";
    }
  }
  return exit_ok;
}

CLI::App* add_subcommand(CLI::App* token, const std::string& name, const std::string& summary,
                         const std::string& example, Options& options) {
  CLI::App* command = token->add_subcommand(name, summary);
  command->footer("Example:\n  " + example);
  add_endpoint_flags(command, options.endpoint);
  command->add_flag("--json", options.json, "Protobuf's JSON form instead of text");
  return command;
}

}  // namespace

void add_token(Program& program) {
  CLI::App* token = program.add_command(
      "token", "Say who may use the daemon: tokens with roles (needs an admin's token)",
      "pipewright token create --name alice --role submit > alice.token");
  token->require_subcommand(1);
  auto options = std::make_shared<Options>();
  CLI::App* create = add_subcommand(
      token, "create",
      "Make a token and print it, once. Its name is the user of the jobs that are submitted with "
      "it",
      "pipewright token create --name alice --role submit --expires 30d > alice.token", *options);
  create->add_option("--name", options->name, "1 to 64 letters, digits, '.', '_' and '-'")
      ->required()
      ->type_name("NAME");
  create
      ->add_option(
          "--role", options->role,
          "read: see all jobs; submit: also submit jobs, cancel and delete one's own; pool: "
          "attach as a pool, nothing else; admin: everything")
      ->required()
      ->check(CLI::IsMember({"read", "submit", "pool", "admin"}));
  create->add_option("--expires", options->expires, "It ends after so long: 30d, 12h, 90min")
      ->type_name("TIME");
  program.on(create, [options] { return create_token(*options); });
  CLI::App* list = add_subcommand(token, "list", "Show the tokens, without their secrets",
                                  "pipewright token list", *options);
  program.on(list, [options] { return list_tokens(*options); });
  CLI::App* revoke = add_subcommand(token, "revoke", "End tokens, and what is connected by them",
                                    "pipewright token revoke alice", *options);
  revoke->add_option("NAME", options->names, "The tokens")->required();
  program.on(revoke, [options] { return revoke_tokens(*options); });
}

}  // namespace pipewright::cli
