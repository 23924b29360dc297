#include "client/cli/net/endpoint.hpp"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "proto/codec/job_file.hpp"

namespace pipewright::cli {

namespace fs = std::filesystem;

namespace {

std::string env(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

std::string read_token(const fs::path& path) {
  std::ifstream file(path);
  if (!file) {
    throw ConfigError("the token file " + path.string() +
                      " cannot be read; the daemon writes it into its data folder as 'token'");
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::string token(trim(text));
  const bool plain = token.find_first_of("\r\n\t ") == std::string::npos;
  if (token.empty() || token.size() > 4096 || !plain) {
    throw ConfigError("the token file " + path.string() + " does not hold one token");
  }
  return token;
}

std::string no_daemon(const std::string& where, const std::string& why, const fs::path& data_dir,
                      bool flag_given) {
  return "no daemon at " + where + " (" + why + "): start one with `pipewright up" +
         (flag_given ? " --data-dir " + data_dir.string() : "") + "`";
}

}  // namespace

void add_endpoint_flags(CLI::App* command, EndpointFlags& flags) {
  command
      ->add_option("--data-dir", flags.data_dir,
                   "Data folder of a local daemon (also PIPEWRIGHT_DATA_DIR)")
      ->type_name("DIR");
  CLI::Option* url =
      command
          ->add_option("--url", flags.url,
                       "The daemon's http://HOST:PORT or https://... (also PIPEWRIGHT_URL)")
          ->type_name("URL");
  command
      ->add_option("--token-file", flags.token_file,
                   "File with the token for --url (also PIPEWRIGHT_TOKEN_FILE)")
      ->type_name("FILE");
  command
      ->add_option("--tls-ca", flags.tls_ca,
                   "Certificates (PEM) to trust for https://, instead of the system's (also "
                   "PIPEWRIGHT_TLS_CA)")
      ->type_name("FILE");
  url->excludes("--data-dir");
}

fs::path data_dir_of(const EndpointFlags& flags) {
  for (const std::string& given : {flags.data_dir, env("PIPEWRIGHT_DATA_DIR")}) {
    if (!given.empty()) return fs::absolute(given).lexically_normal();
  }
  if (const std::string data = env("XDG_DATA_HOME"); !data.empty()) {
    return fs::path(data) / "pipewright";
  }
  if (const std::string home = env("HOME"); !home.empty()) {
    return fs::path(home) / ".local/share/pipewright";
  }
  throw ConfigError("there is no data folder: give --data-dir DIR (HOME is not set)");
}

std::optional<DaemonRecord> read_record(const fs::path& data_dir) {
  const fs::path path = data_dir / "daemon.json";
  std::error_code fault;
  if (!fs::exists(path, fault)) return std::nullopt;
  const Value tree = JobFile::read(path.string()).tree();
  const Value* url = tree.find("url");
  const Value* pid = tree.find("pid");
  if (url == nullptr || !url->is_text() || pid == nullptr || !pid->is_integer()) {
    throw ConfigError(path.string() + " has no 'url' and 'pid': it was not written by pipewrightd");
  }
  const Value* tls_ca = tree.find("tls_ca");
  return DaemonRecord{url->as_text(), pid->as_integer(),
                      tls_ca != nullptr && tls_ca->is_text() ? tls_ca->as_text() : std::string()};
}

bool daemon_alive(std::int64_t pid) {
  if (pid <= 0) return false;
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string stat{std::istreambuf_iterator<char>(file), {}};
  const std::size_t open = stat.find('('), close = stat.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close + 2 >= stat.size()) {
    return false;
  }
  const bool zombie = stat[close + 2] == 'Z' || stat[close + 2] == 'X';
  return !zombie && stat.substr(open + 1, close - open - 1) == "pipewrightd";
}

namespace {

Endpoint endpoint_at(const std::string& url, const std::string& tls_ca) {
  const net::Url address = net::parse_url(url);
  return {.host = address.host,
          .port = address.port,
          .token = {},
          .token_file = {},
          .found_by = {},
          .tls = address.tls,
          .tls_ca = tls_ca};
}

}  // namespace

Endpoint find_daemon(const EndpointFlags& flags) {
  std::string url = flags.url;
  std::string found_by = "--url " + url;
  if (url.empty() && flags.data_dir.empty()) {
    url = env("PIPEWRIGHT_URL");
    found_by = "PIPEWRIGHT_URL=" + url;
  }
  const std::string tls_ca = flags.tls_ca.empty() ? env("PIPEWRIGHT_TLS_CA") : flags.tls_ca;
  if (!url.empty()) {
    Endpoint endpoint = endpoint_at(url, tls_ca);
    const std::string token_file =
        flags.token_file.empty() ? env("PIPEWRIGHT_TOKEN_FILE") : flags.token_file;
    if (token_file.empty()) {
      throw ConfigError("a URL needs a token too: give --token-file FILE or PIPEWRIGHT_TOKEN_FILE");
    }
    endpoint.token = read_token(token_file);
    endpoint.token_file = token_file;
    endpoint.found_by = found_by;
    return endpoint;
  }
  const fs::path data_dir = data_dir_of(flags);
  const bool given = !flags.data_dir.empty();
  const auto record = read_record(data_dir);
  if (!record) throw Error(no_daemon(data_dir.string(), "it has no daemon.json", data_dir, given));
  if (!daemon_alive(record->pid)) {
    throw Error(
        no_daemon(data_dir.string(),
                  "the one that was there, process " + std::to_string(record->pid) + ", has gone",
                  data_dir, given));
  }
  Endpoint endpoint = endpoint_at(record->url, tls_ca.empty() ? record->tls_ca : tls_ca);
  endpoint.token_file = flags.token_file.empty() ? data_dir / "token" : fs::path(flags.token_file);
  endpoint.token = read_token(endpoint.token_file);
  endpoint.found_by = "the data folder " + data_dir.string();
  return endpoint;
}

}  // namespace pipewright::cli
