// Keys as a terminal sends them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pipewright::cli {

/// Characters are themselves; keys without one lie beyond Unicode.
using Key = char32_t;
namespace key {
inline constexpr Key up = 0x110000, down = 0x110001, left = 0x110002, right = 0x110003;
inline constexpr Key page_up = 0x110004, page_down = 0x110005, home = 0x110006, end = 0x110007;
inline constexpr Key other = 0x110008;  // a sequence that means nothing here
inline constexpr Key escape = 0x1B;
}  // namespace key

/// Takes bytes apart into keys, however they are cut into reads. A lone escape comes out with the
/// byte behind it, since only that one tells whether it began a sequence.
class KeyReader {
 public:
  std::vector<Key> read(std::string_view bytes);

 private:
  std::string pending_;
};

}  // namespace pipewright::cli
