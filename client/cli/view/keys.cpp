#include "client/cli/view/keys.hpp"

#include <array>
#include <utility>

#include "client/cli/view/text.hpp"

namespace pipewright::cli {

namespace {

constexpr std::size_t sequence_bytes_max = 16;

/// What follows "ESC [" or "ESC O", the last byte included.
Key key_of(std::string_view sequence) {
  constexpr std::array<std::pair<std::string_view, Key>, 12> known{{{"A", key::up},
                                                                    {"B", key::down},
                                                                    {"C", key::right},
                                                                    {"D", key::left},
                                                                    {"H", key::home},
                                                                    {"F", key::end},
                                                                    {"1~", key::home},
                                                                    {"4~", key::end},
                                                                    {"7~", key::home},
                                                                    {"8~", key::end},
                                                                    {"5~", key::page_up},
                                                                    {"6~", key::page_down}}};
  for (const auto& [bytes, key] : known) {
    if (bytes == sequence) return key;
  }
  return key::other;
}

/// Bytes of the first key, 0 while it is not complete.
std::size_t take(std::string_view bytes, Key& key) {
  if (bytes.front() != '\x1b') {
    const std::size_t size = glyph_bytes_wanted(bytes);
    if (size > bytes.size()) return 0;
    const Glyph glyph = next_glyph(bytes, 0);
    key = glyph.valid ? glyph.code : key::other;
    return glyph.bytes;
  }
  if (bytes.size() < 2) return 0;
  key = key::escape;
  if (bytes[1] != '[' && bytes[1] != 'O') return 1;
  for (std::size_t at = 2; at < bytes.size(); ++at) {
    const bool last = bytes[at] >= '@' && bytes[at] <= '~' && !(at == 2 && bytes[at] == '[');
    if (!last && at < sequence_bytes_max) continue;
    key = key_of(bytes.substr(2, at - 1));
    return at + 1;
  }
  return 0;
}

}  // namespace

std::vector<Key> KeyReader::read(std::string_view bytes) {
  pending_ += bytes;
  std::vector<Key> keys;
  std::size_t at = 0;
  while (at < pending_.size()) {
    Key key = key::other;
    const std::size_t size = take(std::string_view(pending_).substr(at), key);
    if (size == 0) break;
    keys.push_back(key);
    at += size;
  }
  pending_.erase(0, at);
  return keys;
}

}  // namespace pipewright::cli
