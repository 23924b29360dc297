// The routes of docs/http.md: a request in, an answer out, no sockets.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "daemon/net/page.hpp"
#include "daemon/net/token.hpp"
#include "daemon/net/uri.hpp"
#include "daemon/service.hpp"

namespace pipewright {

struct ApiRequest {
  std::string_view method;  // "GET"
  std::string_view target;  // "/v1/jobs?limit=5"
  std::string_view content_type, accept, authorization, idempotency_key;
  std::string_view subprotocols;  // those that a WebSocket offers
  std::string_view body;
  bool websocket = false;  // asks for an upgrade
};

struct ApiReply {
  unsigned status = 200;
  std::string content_type;
  std::string body;
  std::optional<std::filesystem::path> file;  // instead of the body
  std::string allow;                          // methods, of a 405
  std::string cache_control = "no-store";
  std::string security_policy = "default-src 'none'; frame-ancestors 'none'";  // of its content
};

/// The connection is to become the stream of a job, or that of a pool.
struct ServeStream {
  JobId job = 0;
  std::uint64_t from = 1;
  WireFormat format = WireFormat::protobuf;
};
struct ServePool {};

using ApiAnswer = std::variant<ApiReply, ServeStream, ServePool>;

class Api {
 public:
  Api(Service& service, Token token, Page page = {})
      : service_(service), token_(std::move(token)), page_(std::move(page)) {}

  ApiAnswer answer(const ApiRequest& request);
  /// The token is right, or not needed: a body may be read.
  bool may_send_body(const ApiRequest& request) const;
  /// An ErrorReply in the form that the request accepts.
  static ApiReply fault(unsigned status, const std::string& message, std::string_view accept,
                        const std::string& path = {});

 private:
  struct Call {
    const ApiRequest& request;
    Uri uri;
    JobId job = 0;          // {id} of the route
    std::uint32_t run = 0;  // {run} of the route
    std::string name;       // {name} of the route
    WireFormat format = WireFormat::json;
  };
  enum class Access { open, token, websocket };
  struct Route {
    std::string_view method;
    std::vector<std::string_view> path;
    Access access;
    std::vector<std::string> parameters;
    ApiAnswer (Api::*handler)(const Call& call);
  };

  static const std::vector<Route>& routes();
  ApiAnswer dispatch(const ApiRequest& request);
  static bool match(const std::vector<std::string_view>& pattern, Call& call);
  static const Route& find_route(Call& call);
  bool token_shown(const ApiRequest& request) const;

  ApiAnswer page(const Call& call);
  ApiAnswer asset(const Call& call);
  ApiAnswer health(const Call& call);
  ApiAnswer ready(const Call& call);
  ApiAnswer metrics(const Call& call);
  ApiAnswer submit(const Call& call);
  ApiAnswer list(const Call& call);
  ApiAnswer show(const Call& call);
  ApiAnswer cancel(const Call& call);
  ApiAnswer remove(const Call& call);
  ApiAnswer events(const Call& call);
  ApiAnswer runs(const Call& call);
  ApiAnswer run(const Call& call);
  ApiAnswer series(const Call& call);
  ApiAnswer files(const Call& call);
  ApiAnswer file(const Call& call);
  ApiAnswer stream(const Call& call);
  ApiAnswer pools(const Call& call);
  ApiAnswer attach(const Call& call);
  Job existing(JobId id);
  Run existing_run(JobId id, std::uint32_t number);
  void need_files(const Call& call);

  Service& service_;
  Token token_;
  Page page_;
};

}  // namespace pipewright
