// Texts to learn from: UTF-8 files whose characters (code points) are the tokens.
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright {

/// A text as tokens: code points numbered by their rank in the sorted set of those that occur.
struct TokenText {
  std::vector<std::int32_t> tokens;
  std::vector<char32_t> vocabulary;  // ascending; vocabulary[token] is the token's code point
};

/// Reads all of `in`. A byte order mark at the beginning is not part of the text. Throws DataError,
/// with `path`, for a text without characters, for bytes that are not UTF-8 (overlong forms,
/// surrogates and code points above U+10FFFF among them; says which, in which line and at which
/// byte of the file), and when reading fails.
TokenText read_text(std::istream& in, const std::string& path);

std::string to_utf8(char32_t c);

/// The code points of `utf8`. Throws DataError as read_text does for what is not UTF-8; `where`
/// says where it stands.
std::vector<char32_t> code_points(std::string_view utf8, const std::string& where);

}  // namespace pipewright
