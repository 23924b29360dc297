#include "proto/codec/token.hpp"

#include "pipewright/v1/token.pb.h"
#include "proto/codec/wire.hpp"

namespace pipewright {
namespace {

void put(const TokenInfo& plain, v1::TokenInfo& message) {
  message.set_name(plain.name);
  message.set_role(plain.role);
  message.set_created_unix_ms(plain.created_unix_ms);
  message.set_last_used_unix_ms(plain.last_used_unix_ms);
  message.set_expires_unix_ms(plain.expires_unix_ms);
}

TokenInfo get(const v1::TokenInfo& message) {
  return {message.name(), message.role(), message.created_unix_ms(), message.last_used_unix_ms(),
          message.expires_unix_ms()};
}

void put(const TokenList& plain, v1::TokenList& message) {
  for (const TokenInfo& token : plain.tokens) put(token, *message.add_tokens());
}

TokenList get(const v1::TokenList& message) {
  TokenList plain;
  for (const v1::TokenInfo& token : message.tokens()) plain.tokens.push_back(get(token));
  return plain;
}

void put(const TokenRequest& plain, v1::TokenRequest& message) {
  message.set_name(plain.name);
  message.set_role(plain.role);
  message.set_expires_unix_ms(plain.expires_unix_ms);
}

TokenRequest get(const v1::TokenRequest& message) {
  return {message.name(), message.role(), message.expires_unix_ms()};
}

void put(const TokenReply& plain, v1::TokenReply& message) {
  message.set_token(plain.token);
  put(plain.info, *message.mutable_info());
}

TokenReply get(const v1::TokenReply& message) {
  return {message.token(), get(message.info())};
}

}  // namespace

#define PIPEWRIGHT_CODEC_FOR(Plain)                                \
  template <>                                                      \
  std::string encode(const Plain& plain, WireFormat format) {      \
    v1::Plain message;                                             \
    put(plain, message);                                           \
    return wire::serialize(message, format);                       \
  }                                                                \
  template <>                                                      \
  Plain decode<Plain>(std::string_view bytes, WireFormat format) { \
    v1::Plain message;                                             \
    wire::parse(bytes, format, message);                           \
    return get(message);                                           \
  }

PIPEWRIGHT_CODEC_FOR(TokenInfo)
PIPEWRIGHT_CODEC_FOR(TokenList)
PIPEWRIGHT_CODEC_FOR(TokenRequest)
PIPEWRIGHT_CODEC_FOR(TokenReply)

#undef PIPEWRIGHT_CODEC_FOR

}  // namespace pipewright
