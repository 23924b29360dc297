// A request that gets a reply with a certain 4xx or 5xx status.
#pragma once

#include <string>

#include "core/base/error.hpp"

namespace pipewright {

class HttpFault : public Error {
 public:
  HttpFault(unsigned status, const std::string& message, std::string allow = {})
      : Error(message), status_(status), allow_(std::move(allow)) {}
  unsigned status() const { return status_; }
  /// Of a 405: the methods that are allowed.
  const std::string& allow() const { return allow_; }

 private:
  unsigned status_;
  std::string allow_;
};

}  // namespace pipewright
