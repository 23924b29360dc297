// UTF-8 as protobuf and YAML want it: no overlong forms, no surrogates, at most U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pipewright {

/// Position of the first byte that is not part of valid UTF-8, or npos.
std::size_t find_invalid_utf8(std::string_view text);

/// `text` with U+FFFD in place of every byte that is not valid UTF-8.
std::string clean_utf8(std::string_view text);

}  // namespace pipewright
