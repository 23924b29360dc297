// The address of a daemon: "http://127.0.0.1:7070", "https://cluster.example.org:7070".
#pragma once

#include <string>

namespace pipewright::net {

struct Url {
  std::string host;  // without the brackets of an IPv6 address
  std::string port;
  bool tls = false;

  /// "host:port", as the header Host has it.
  std::string authority() const;
  std::string text() const { return (tls ? "https://" : "http://") + authority(); }
};

/// A path of "/" at most; without a port 80 or 443. Throws ConfigError "the URL '...' ...".
Url parse_url(const std::string& text);

}  // namespace pipewright::net
