// One HTTP exchange with a daemon, blocking, with a deadline. The only other code of the client
// that sees Beast is stream.cpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

#include "client/cli/net/endpoint.hpp"
#include "core/base/error.hpp"

namespace pipewright::cli {

inline constexpr std::chrono::seconds request_deadline{30};

/// The daemon cannot be reached, or went away during an exchange.
class ConnectionError : public Error {
 public:
  using Error::Error;
};

/// It had been reached: whether it has done what was asked is not known.
class BrokenConnection : public ConnectionError {
 public:
  using ConnectionError::ConnectionError;
};

struct HttpRequest {
  std::string method = "GET";
  std::string target;  // path and query
  std::string body = {};
  std::string content_type = {};
  std::string accept = "application/x-protobuf";
  std::string idempotency_key = {};
};

struct HttpReply {
  unsigned status = 0;
  std::string content_type;
  std::string body;
};

/// Throws ConnectionError. The reply may have any status.
HttpReply exchange(const Endpoint& endpoint, const HttpRequest& request,
                   std::chrono::milliseconds deadline = request_deadline);

/// As `exchange`, but a reply of status 200 goes to a file of any length (through `path` +
/// ".part"); its body is empty then. The deadline is for each piece, not for the whole. Throws
/// ConnectionError, and Error when the file cannot be written.
HttpReply download(const Endpoint& endpoint, const HttpRequest& request,
                   const std::filesystem::path& path,
                   std::chrono::milliseconds deadline = request_deadline);

}  // namespace pipewright::cli
