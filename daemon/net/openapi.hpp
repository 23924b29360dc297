// The OpenAPI 3.1 description of the HTTP interface: its routes are those of the route table, its
// schemas those of the messages, so that neither can drift; what this adds are words.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/value.hpp"

namespace pipewright {

/// A row of the route table.
struct RouteInfo {
  std::string method;  // "GET"
  std::string path;    // "/v1/jobs/{id}"
  std::string role;    // that it needs: "", "any", "read", ...
  bool websocket = false;
  std::vector<std::string> parameters;  // of the query
};

/// A route that this file has no words for is a programmer's mistake.
Value openapi(std::span<const RouteInfo> routes);

}  // namespace pipewright
