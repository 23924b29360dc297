#include "proto/net/url.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace pipewright::net {

std::string Url::authority() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  return (is_v6 ? "[" + host + "]" : host) + ":" + port;
}

Url parse_url(const std::string& text) {
  const auto wrong = [&](const std::string& why) {
    return ConfigError("the URL '" + text + "' " + why + "; it looks like http://127.0.0.1:7070");
  };
  Url url;
  url.tls = text.starts_with("https://");
  if (!url.tls && !text.starts_with("http://")) {
    throw wrong("does not begin with http:// or https://");
  }
  std::string rest = text.substr(text.find("://") + 3);
  if (rest.ends_with('/')) rest.pop_back();
  if (rest.find_first_of("/?#@ \r\n") != std::string::npos) {
    throw wrong("has more than host and port");
  }
  const bool is_v6 = rest.starts_with('[');
  const std::size_t bracket = rest.find(']');
  if (is_v6 && bracket == std::string::npos) throw wrong("has no ']'");
  if (is_v6 && bracket + 1 < rest.size() && rest[bracket + 1] != ':') {
    throw wrong("has more than host and port");
  }
  const std::size_t colon = rest.find(':', is_v6 ? bracket : 0);
  url.host = is_v6 ? rest.substr(1, bracket - 1) : rest.substr(0, colon);
  url.port = url.tls ? "443" : "80";
  if (colon != std::string::npos) url.port = rest.substr(colon + 1);
  const auto number = parse_integer(url.port);
  if (url.host.empty()) throw wrong("has no host");
  if (!number || *number < 1 || *number > 65535) throw wrong("has no port from 1 to 65535");
  return url;
}

}  // namespace pipewright::net
