// What the routes of api.hpp answer with.
#pragma once

#include <string_view>

#include "daemon/net/api.hpp"
#include "daemon/net/http_fault.hpp"

namespace pipewright {

inline WireFormat format_from(std::string_view accept) {
  const std::size_t protobuf = accept.find("application/x-protobuf");
  return protobuf < accept.find("application/json") ? WireFormat::protobuf : WireFormat::json;
}

template <class T>
ApiReply reply(unsigned status, const T& message, WireFormat format) {
  ApiReply reply;
  reply.status = status;
  reply.content_type =
      format == WireFormat::protobuf ? "application/x-protobuf" : "application/json";
  reply.body = encode(message, format);
  return reply;
}

/// A 401 for a token that was shown.
class WrongToken : public HttpFault {
 public:
  explicit WrongToken(const std::string& message) : HttpFault(401, message) {}
};

}  // namespace pipewright
