// Who may use the routes: tokens and their roles, and the routes that are about tokens.

#include <algorithm>

#include "core/base/text.hpp"
#include "daemon/clock.hpp"
#include "daemon/log.hpp"
#include "daemon/net/api.hpp"
#include "daemon/net/api_reply.hpp"
#include "daemon/net/job_body.hpp"

namespace pipewright {
namespace {

/// A body that is protobuf or its JSON form.
template <class T>
T body_as(const ApiRequest& request) {
  const std::string type = media_type(request.content_type);
  if (type == "application/json") return decode<T>(request.body, WireFormat::json);
  if (type == "application/x-protobuf") return decode<T>(request.body, WireFormat::protobuf);
  throw HttpFault(
      415, "Content-Type is '" + type + "'; here it is application/json or application/x-protobuf");
}

/// The token that a request shows: a browser, which can set no headers of a WebSocket, offers it as
/// the subprotocol "bearer.TOKEN" instead, for a URL would end up in logs and histories.
std::string_view token_of(const ApiRequest& request) {
  constexpr std::string_view scheme = "Bearer ", subprotocol = "bearer.";
  // RFC 7235: the name of the scheme has no case.
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == (b | 32); };
  if (request.authorization.size() > scheme.size() &&
      std::equal(scheme.begin(), scheme.end(), request.authorization.begin(), same)) {
    return trim(request.authorization.substr(scheme.size()));
  }
  if (!request.websocket) return {};
  for (const std::string_view offered : split(request.subprotocols, ',')) {
    if (trim(offered).starts_with(subprotocol)) return trim(offered).substr(subprotocol.size());
  }
  return {};
}

}  // namespace

/// Who asks. Throws a 401.
std::shared_ptr<const Holder> Api::holder_of(const ApiRequest& request) {
  const std::string_view secret = token_of(request);
  if (secret.empty()) {
    service_.metrics().token_refused();
    throw HttpFault(
        401,
        "this needs the header 'Authorization: Bearer TOKEN' with a token that an admin "
        "has made ('pipewright token create'), or with the content of the file 'token' "
        "in the daemon's data folder");
  }
  const std::int64_t now = unix_ms();
  const std::shared_ptr<const Holder> holder = tokens_.find(secret, now);
  if (holder && !holder->ended(now)) return holder;
  service_.metrics().token_refused();
  throw WrongToken(holder ? "the token '" + holder->name + "' has expired: ask an admin for another"
                          : "the token is not one of this daemon's");
}

/// As in the description.
std::string_view Api::role_name(Access access) {
  switch (access) {
    case Access::open:
      return "";
    case Access::any_token:
      return "any";
    case Access::read:
      return name_of(Role::read);
    case Access::submit:
      return name_of(Role::submit);
    case Access::pool:
      return name_of(Role::pool);
    case Access::admin:
      break;
  }
  return name_of(Role::admin);
}

void Api::need(Access access, const Holder& holder) {
  const std::optional<Role> role = role_from(role_name(access));
  if (!role || includes(holder.role, *role)) return;
  throw HttpFault(403, "this needs a token with the role '" + std::string(name_of(*role)) + "'; '" +
                           holder.name + "' has the role '" + std::string(name_of(holder.role)) +
                           "'");
}

/// The job is the holder's own, or he is an admin.
void Api::need_own(const Job& job, const Holder& holder, std::string_view to_do) {
  if (holder.role == Role::admin || job.user == holder.name) return;
  throw HttpFault(403, "job " + std::to_string(job.id) + " is that of '" + job.user +
                           "': only with that token, or an admin's, you may " + std::string(to_do) +
                           " it");
}

bool Api::may_send_body(const ApiRequest& request) {
  const std::int64_t now = unix_ms();
  const auto holder = tokens_.find(token_of(request), now);
  return holder && !holder->ended(now);
}

/// The one that was shown.
ApiAnswer Api::token(const Call& call) {
  for (TokenInfo& info : tokens_.list().tokens) {
    if (info.name == call.holder->name) return reply(200, info, call.format);
  }
  throw HttpFault(401, "the token has been revoked");
}

ApiAnswer Api::tokens(const Call& call) {
  return reply(200, tokens_.list(), call.format);
}

ApiAnswer Api::create_token(const Call& call) {
  const auto request = body_as<TokenRequest>(call.request);
  try {
    const TokenReply made = tokens_.create(request, unix_ms());
    log_info("token made",
             {{"name", made.info.name}, {"role", made.info.role}, {"by", call.holder->name}});
    return reply(201, made, call.format);
  } catch (const TokenExists& error) {
    throw HttpFault(409, error.what());
  }
}

ApiAnswer Api::revoke_token(const Call& call) {
  if (!tokens_.contains(call.name)) {
    throw HttpFault(404, "there is no token '" + call.name + "'");
  }
  const TokenInfo info = tokens_.revoke(call.name);
  log_info("token revoked", {{"name", info.name}, {"by", call.holder->name}});
  service_.wake_all_streams();
  return reply(200, info, call.format);
}

}  // namespace pipewright
