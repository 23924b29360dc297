// UTF-8 as protobuf, YAML and texts to learn from want it: no overlong forms, no surrogates, at
// most U+10FFFF (RFC 3629).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pipewright {

struct Utf8Character {
  char32_t code = 0;
  std::size_t bytes = 0;  // 0: the bytes are not valid UTF-8
};

/// The character at the front of `text`, which is not empty.
Utf8Character first_character(std::string_view text);

/// Appends a code point, which must be one that UTF-8 can hold.
void append_utf8(std::string& out, char32_t code);

/// Position of the first byte that is not part of valid UTF-8, or npos.
std::size_t find_invalid_utf8(std::string_view text);

/// `text` with U+FFFD in place of every byte that is not valid UTF-8.
std::string clean_utf8(std::string_view text);

}  // namespace pipewright
