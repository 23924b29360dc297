// The routes of docs/http.md: a request in, an answer out, no sockets.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/train/data_roots.hpp"
#include "daemon/auth/tokens.hpp"
#include "daemon/net/page.hpp"
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
  bool wrong_token = false;  // a 401 that is to come slowly
  std::string user;          // whose token was shown
};

/// The connection is to become the stream of a job, or that of a pool.
struct ServeStream {
  JobId job = 0;
  std::uint64_t from = 1;
  WireFormat format = WireFormat::protobuf;
  std::shared_ptr<const Holder> holder;  // it ends with this token
};
struct ServePool {
  std::shared_ptr<const Holder> holder;
};

/// A job is to be taken; Api::submitted() has the reply.
struct TakeJob {
  /// Throws what the reply is to say. For another thread: it reads what the job names, and needs
  /// nothing of this one's.
  std::function<Store::NewJob()> check;
  std::string user;
  WireFormat format = WireFormat::json;
};

using ApiAnswer = std::variant<ApiReply, ServeStream, ServePool, TakeJob>;

/// Which files jobs may read.
struct DataPolicy {
  DataRoots roots;  // bounded: these, whoever submits
  /// Only users of this machine reach the daemon. Without roots its owner may then read whatever he
  /// can, as long as nobody else has a token; nobody reads any file otherwise.
  bool loopback_alone = true;
};

class Api {
 public:
  Api(Service& service, Tokens& tokens, DataPolicy data = {}, Page page = {})
      : service_(service), tokens_(tokens), data_(std::move(data)), page_(std::move(page)) {}

  ApiAnswer answer(const ApiRequest& request);
  static ApiReply submitted(const Service::SubmitResult& result, WireFormat format);
  /// The same for a job whose check threw, in the handler of that.
  static ApiReply not_taken(WireFormat format);
  /// The token is known: a body may be read.
  bool may_send_body(const ApiRequest& request);
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
    std::shared_ptr<const Holder> holder;  // who asks; null on an open route
  };
  /// Who may use a route: everybody, whoever has a token, or one with this role.
  enum class Access { open, any_token, read, submit, pool, admin };
  struct Route {
    std::string_view method;
    std::vector<std::string_view> path;
    Access access;
    std::vector<std::string> parameters;
    ApiAnswer (Api::*handler)(const Call& call);
    bool websocket = false;
  };

  static const std::vector<Route>& routes();
  static std::string_view role_name(Access access);
  static ApiReply refusal(std::string_view accept, std::string_view path);
  ApiAnswer dispatch(const ApiRequest& request);
  static bool match(const std::vector<std::string_view>& pattern, Call& call);
  static const Route& find_route(Call& call);
  std::shared_ptr<const Holder> holder_of(const ApiRequest& request);
  static void need(Access access, const Holder& holder);
  static void need_own(const Job& job, const Holder& holder, std::string_view to_do);

  ApiAnswer page(const Call& call);
  ApiAnswer asset(const Call& call);
  ApiAnswer health(const Call& call);
  ApiAnswer ready(const Call& call);
  ApiAnswer metrics(const Call& call);
  ApiAnswer description(const Call& call);
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
  ApiAnswer drop_pool(const Call& call);
  ApiAnswer attach(const Call& call);
  ApiAnswer token(const Call& call);
  ApiAnswer tokens(const Call& call);
  ApiAnswer create_token(const Call& call);
  ApiAnswer revoke_token(const Call& call);
  Job existing(JobId id);
  Job brief(JobId id);
  Run existing_run(JobId id, std::uint32_t number);
  void need_files(const Call& call);

  Service& service_;
  Tokens& tokens_;
  DataPolicy data_;
  Page page_;
};

}  // namespace pipewright
