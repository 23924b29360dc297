// Which daemon a command talks to, and how it proves that it may.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "proto/net/url.hpp"

namespace CLI {
class App;
}

namespace pipewright::cli {

/// The flags --data-dir, --url, --token-file and --tls-ca as given.
struct EndpointFlags {
  std::string data_dir = {}, url = {}, token_file = {}, tls_ca = {};
};
/// Adds the flags to a command.
void add_endpoint_flags(CLI::App* command, EndpointFlags& flags);

struct Endpoint {
  std::string host, port;
  std::string token;
  std::filesystem::path token_file = {};  // where the token was read
  std::string found_by;                   // "--url ...", or "the data folder ...": for messages

  bool tls = false;
  std::string tls_ca = {};  // file with the certificates that are trusted; empty: the system's

  std::string authority() const { return net::Url{host, port, tls}.authority(); }
  std::string url() const { return net::Url{host, port, tls}.text(); }
};

/// What DATA_DIR/daemon.json says. It may be stale: the daemon may have been killed.
struct DaemonRecord {
  std::string url;
  std::int64_t pid = 0;
  std::string tls_ca = {};
};

/// The local data folder, absolute: --data-dir, PIPEWRIGHT_DATA_DIR, or the user's own
/// ($XDG_DATA_HOME/pipewright, ~/.local/share/pipewright).
std::filesystem::path data_dir_of(const EndpointFlags& flags);

/// The record of a data folder, or nothing when there is none. Throws ConfigError for a broken one.
std::optional<DaemonRecord> read_record(const std::filesystem::path& data_dir);

/// A process of this id that is (as far as /proc tells) a pipewrightd.
bool daemon_alive(std::int64_t pid);

/// Flags go before environment variables, and a URL before a data folder. Throws ConfigError when
/// what they name is not there, Error when the data folder's daemon does not run.
Endpoint find_daemon(const EndpointFlags& flags);

}  // namespace pipewright::cli
