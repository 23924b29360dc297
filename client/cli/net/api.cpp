#include "client/cli/net/api.hpp"

namespace pipewright::cli {

void throw_refusal(const Endpoint& endpoint, unsigned status, const std::string& body,
                   WireFormat format) {
  std::string error;
  try {
    const auto reply = decode<ErrorReply>(body, format);
    // The text usually begins with the key already.
    const bool named = reply.path.empty() || reply.error.find(reply.path) != std::string::npos;
    error = named ? reply.error : reply.path + ": " + reply.error;
  } catch (const ProtocolError&) {
    error = body.substr(0, 200);
  }
  if (status == 401) {
    throw ApiError(status, "the daemon at " + endpoint.url() + " (" + endpoint.found_by +
                               ") does not accept the token" +
                               (error.empty() ? std::string() : " (" + error + ")") +
                               ": is the token file that of this daemon?");
  }
  if (error.empty()) {
    error = endpoint.url() + " answers with status " + std::to_string(status) +
            ": is it a pipewright daemon?";
  }
  if (status == 400 || status == 404 || status == 413) throw ConfigError(error);
  throw ApiError(status, error);
}

namespace {

std::string job_path(std::uint32_t id) {
  return "/v1/jobs/" + std::to_string(id);
}

std::string run_path(std::uint32_t id, std::uint32_t run) {
  return job_path(id) + "/runs/" + std::to_string(run);
}

/// For a part of a path.
std::string percent_encoded(std::string_view text) {
  static constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  static constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (plain.find(c) != std::string_view::npos) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += {'%', digits[byte / 16], digits[byte % 16]};
    }
  }
  return out;
}

void expect_ok(const Endpoint& endpoint, const HttpReply& reply) {
  if (reply.status >= 200 && reply.status < 300) return;
  const bool json = reply.content_type.starts_with("application/json");
  throw_refusal(endpoint, reply.status, reply.body, json ? WireFormat::json : WireFormat::protobuf);
}

}  // namespace

template <class Reply>
Reply Api::ask(const HttpRequest& request) const {
  const HttpReply reply = exchange(endpoint_, request, deadline_);
  expect_ok(endpoint_, reply);
  return decode<Reply>(reply.body, WireFormat::protobuf);
}

Health Api::health(std::chrono::milliseconds deadline) const {
  const HttpReply reply = exchange(endpoint_, {.target = "/healthz"}, deadline);
  expect_ok(endpoint_, reply);
  return decode<Health>(reply.body, WireFormat::protobuf);
}

std::uint32_t Api::submit(const Value& spec, const std::string& idempotency_key) const {
  return ask<SubmitReply>({.method = "POST",
                           .target = "/v1/jobs",
                           .body = encode(JobSpecBody{spec}, WireFormat::protobuf),
                           .content_type = "application/x-protobuf",
                           .idempotency_key = idempotency_key})
      .id;
}

JobList Api::list(std::uint32_t limit, std::uint32_t before, const std::string& state) const {
  std::string target = "/v1/jobs?limit=" + std::to_string(limit);
  if (before != 0) target += "&before=" + std::to_string(before);
  if (!state.empty()) target += "&state=" + state;
  return ask<JobList>({.target = target});
}

Job Api::job(std::uint32_t id) const {
  return ask<Job>({.target = job_path(id)});
}

Job Api::cancel(std::uint32_t id) const {
  return ask<Job>({.method = "POST", .target = job_path(id) + "/cancel"});
}

Job Api::remove(std::uint32_t id) const {
  return ask<Job>({.method = "DELETE", .target = job_path(id)});
}

EventList Api::events(std::uint32_t id, std::uint64_t from, const std::string& kind) const {
  return ask<EventList>({.target = job_path(id) + "/events?from=" + std::to_string(from) +
                                   (kind.empty() ? "" : "&kind=" + kind)});
}

RunList Api::runs(std::uint32_t id, std::uint32_t from) const {
  return ask<RunList>({.target = job_path(id) + "/runs?limit=500&from=" + std::to_string(from)});
}

FileList Api::files(std::uint32_t id, std::uint32_t run) const {
  return ask<FileList>({.target = run_path(id, run) + "/files"});
}

void Api::download_file(std::uint32_t id, std::uint32_t run, const std::string& name,
                        const std::filesystem::path& path) const {
  const HttpRequest request{.target = run_path(id, run) + "/files/" + name,
                            .accept = "application/octet-stream"};
  expect_ok(endpoint_, download(endpoint_, request, path));
}

std::string Api::page_link() const {
  const HttpReply reply = exchange(endpoint_, {.target = "/"});
  if (reply.status == 404) return {};
  expect_ok(endpoint_, reply);
  return endpoint_.url() + "/#token=" + endpoint_.token;
}

TokenReply Api::create_token(const TokenRequest& request) const {
  return ask<TokenReply>({.method = "POST",
                          .target = "/v1/tokens",
                          .body = encode(request, WireFormat::protobuf),
                          .content_type = "application/x-protobuf"});
}

TokenList Api::tokens() const {
  return ask<TokenList>({.target = "/v1/tokens"});
}

TokenInfo Api::revoke_token(const std::string& name) const {
  return ask<TokenInfo>({.method = "DELETE", .target = "/v1/tokens/" + name});
}

PoolList Api::pools() const {
  return ask<PoolList>({.target = "/v1/pools"});
}

PoolInfo Api::drop_pool(const std::string& name) const {
  return ask<PoolInfo>(
      {.method = "POST", .target = "/v1/pools/" + percent_encoded(name) + "/drop"});
}

}  // namespace pipewright::cli
