// Plain forms of token.proto. encode and decode are those of api.hpp, defined for all of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/codec/api.hpp"

namespace pipewright {

struct TokenInfo {
  std::string name, role;
  std::int64_t created_unix_ms = 0;
  std::int64_t last_used_unix_ms = 0;
  std::int64_t expires_unix_ms = 0;  // 0: never
};

struct TokenList {
  std::vector<TokenInfo> tokens;
};

struct TokenRequest {
  std::string name, role;
  std::int64_t expires_unix_ms = 0;
};

struct TokenReply {
  std::string token;
  TokenInfo info;
};

}  // namespace pipewright
