// The daemon's routes as functions (docs/http.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "client/cli/net/endpoint.hpp"
#include "client/cli/net/http.hpp"
#include "core/base/error.hpp"
#include "core/base/value.hpp"
#include "proto/codec/api.hpp"
#include "proto/codec/token.hpp"

namespace pipewright::cli {

/// The daemon refused with a 4xx or 5xx that is not the fault of what the user typed.
class ApiError : public Error {
 public:
  ApiError(unsigned status, const std::string& message) : Error(message), status_(status) {}
  unsigned status() const { return status_; }

 private:
  unsigned status_;
};

/// Throws what a refusal stands for: ConfigError for 400, 404 and 413 (the user asked for something
/// impossible), ApiError else. `body` is an ErrorReply in `format`, or anything.
[[noreturn]] void throw_refusal(const Endpoint& endpoint, unsigned status, const std::string& body,
                                WireFormat format);

/// Every function throws ConnectionError, what throw_refusal throws, and ProtocolError.
class Api {
 public:
  explicit Api(Endpoint endpoint, std::chrono::milliseconds deadline = request_deadline)
      : endpoint_(std::move(endpoint)), deadline_(deadline) {}
  const Endpoint& endpoint() const { return endpoint_; }

  Health health(std::chrono::milliseconds deadline = request_deadline) const;
  /// Asked again with the same key (not empty) it is the same job.
  std::uint32_t submit(const Value& spec, const std::string& idempotency_key) const;
  /// One page, newest first. `before` 0: from the newest on.
  JobList list(std::uint32_t limit, std::uint32_t before, const std::string& state) const;
  Job job(std::uint32_t id) const;
  Job cancel(std::uint32_t id) const;
  /// The job as it was.
  Job remove(std::uint32_t id) const;
  /// `kind`: "point", "log", "state", "run_state", or empty for all.
  EventList events(std::uint32_t id, std::uint64_t from, const std::string& kind) const;
  /// One page, in the order of their numbers.
  RunList runs(std::uint32_t id, std::uint32_t from) const;
  FileList files(std::uint32_t id, std::uint32_t run) const;
  void download_file(std::uint32_t id, std::uint32_t run, const std::string& name,
                     const std::filesystem::path& path) const;
  PoolList pools() const;
  /// The pool as it was.
  PoolInfo drop_pool(const std::string& name) const;
  /// What to open in a browser: the daemon's page, with the token in the fragment, which browsers
  /// send nowhere. Empty when the daemon was built without its page.
  std::string page_link() const;
  TokenReply create_token(const TokenRequest& request) const;
  TokenList tokens() const;
  /// The token as it was.
  TokenInfo revoke_token(const std::string& name) const;

 private:
  template <class Reply>
  Reply ask(const HttpRequest& request) const;

  Endpoint endpoint_;
  std::chrono::milliseconds deadline_;
};

}  // namespace pipewright::cli
