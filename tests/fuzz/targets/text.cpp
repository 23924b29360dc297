// Texts to learn from.
#include <sstream>

#include "core/data/text.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace pipewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::may_refuse([&] {
    const std::string bytes(fuzz::text_of(data, size));
    std::istringstream in(bytes);
    const TokenText text = read_text(in, "corpus.txt");
    std::string back = bytes.starts_with("\xEF\xBB\xBF") ? "\xEF\xBB\xBF" : "";
    for (const std::int32_t token : text.tokens) {
      back += to_utf8(text.vocabulary.at(static_cast<std::size_t>(token)));
    }
    fuzz::claim(back == bytes, "the tokens are the text");
  });
  return 0;
}
