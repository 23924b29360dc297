// POST /v1/jobs.
#include <algorithm>

#include "core/base/text.hpp"
#include "daemon/net/api_reply.hpp"
#include "daemon/net/job_body.hpp"

namespace pipewright {

ApiAnswer Api::submit(const Call& call) {
  const bool anywhere = data_.roots.bounded() || (data_.loopback_alone && !tokens_.several());
  const std::string_view key = trim(call.request.idempotency_key);
  const auto is_plain = [](unsigned char c) { return c > ' ' && c < 127; };
  if (key.size() > 200 || !std::all_of(key.begin(), key.end(), is_plain)) {
    throw HttpFault(400, "Idempotency-Key: at most 200 visible ASCII characters without spaces");
  }
  auto check = [type = std::string(call.request.content_type),
                body = std::string(call.request.body),
                roots = anywhere ? data_.roots : DataRoots(std::vector<std::string>{}),
                by = Submission{call.holder->name, std::string(key)}, role = call.holder->role] {
    Value checked = job_from_body(type, body, roots);
    if (checked.at("priority").as_integer() > 0 && !includes(role, Role::admin)) {
      throw HttpFault(403, "priority: above 0 needs a token with the role 'admin'; '" + by.user +
                               "' has '" + std::string(name_of(role)) + "'");
    }
    return Service::prepare(std::move(checked), by);
  };
  return TakeJob{std::move(check), call.holder->name, call.format};
}

ApiReply Api::submitted(const Service::SubmitResult& result, WireFormat format) {
  if (const auto* job = std::get_if<Service::Submitted>(&result)) {
    return reply(job->is_new ? 201 : 200, SubmitReply{job->id}, format);
  }
  try {
    std::rethrow_exception(std::get<std::exception_ptr>(result));
  } catch (...) {
    return not_taken(format);
  }
}

ApiReply Api::not_taken(WireFormat format) {
  const bool json = format == WireFormat::json;
  return refusal(json ? "application/json" : "application/x-protobuf", "/v1/jobs");
}

}  // namespace pipewright
