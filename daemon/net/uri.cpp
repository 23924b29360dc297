#include "daemon/net/uri.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace pipewright {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string percent_decoded(std::string_view text, bool in_query) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        throw ProtocolError("'" + std::string(text) +
                            "' holds a '%' without two hexadecimal digits");
      }
      out.push_back(static_cast<char>(high * 16 + low));
      i += 2;
    } else {
      out.push_back(in_query && text[i] == '+' ? ' ' : text[i]);
    }
  }
  return out;
}

Uri Uri::parse(std::string_view target) {
  if (target.empty() || target.front() != '/') {
    throw ProtocolError("the target of a request begins with '/'");
  }
  Uri uri;
  const std::size_t mark = target.find('?');
  for (const std::string_view part : split(target.substr(1, mark - 1), '/')) {
    uri.path.push_back(percent_decoded(part, false));
  }
  if (mark == std::string_view::npos) return uri;
  for (const std::string_view pair : split(target.substr(mark + 1), '&')) {
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1);
    uri.query[percent_decoded(pair.substr(0, equals), true)] = percent_decoded(value, true);
  }
  return uri;
}

}  // namespace pipewright
