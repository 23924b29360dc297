#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "core/base/error.hpp"
#include "core/base/utf8.hpp"
#include "core/data/npy.hpp"
#include "core/data/text.hpp"
#include "tests/support/shared.hpp"

namespace pipewright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TokenText read(const std::string& bytes) {
  std::istringstream stream(bytes);
  return read_text(stream, "corpus.txt");
}

std::string error_of(const std::string& bytes) {
  try {
    read(bytes);
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Text, TokensAreRanksInTheSortedSetOfCharacters) {
  const TokenText text = read("bad cab\n");
  EXPECT_THAT(text.vocabulary, ElementsAre(U'\n', U' ', U'a', U'b', U'c', U'd'));
  EXPECT_THAT(text.tokens, ElementsAre(3, 2, 5, 1, 4, 2, 3, 0));
}

TEST(Text, ATokenIsACodePointWhateverItsBytes) {
  const TokenText text = read("z\u00e9\u20ac\U0001F600\u00e9");
  EXPECT_THAT(text.vocabulary, ElementsAre(U'z', U'\u00e9', U'\u20ac', U'\U0001F600'));
  EXPECT_THAT(text.tokens, ElementsAre(0, 1, 2, 3, 1));
}

TEST(Text, AByteOrderMarkIsNoPartOfTheTextExceptWithinIt) {
  EXPECT_THAT(read("\xef\xbb\xbf"
                   "ab")
                  .vocabulary,
              ElementsAre(U'a', U'b'));
  EXPECT_THAT(read("a\xef\xbb\xbf").vocabulary, ElementsAre(U'a', U'\ufeff'));
  EXPECT_THAT(error_of("\xef\xbb\xbf"), HasSubstr("corpus.txt: is empty"));
}

TEST(Text, AnEmptyFileIsRefused) {
  EXPECT_EQ(error_of(""), "corpus.txt: is empty; expected a text in UTF-8");
}

TEST(Text, InvalidBytesAreRefusedWithLineAndByte) {
  EXPECT_THAT(error_of("one\ntwo\nab\xc3("), HasSubstr("corpus.txt:3: byte 10: 0xC3 is not valid"));
  EXPECT_THAT(error_of("\xff"), HasSubstr("corpus.txt:1: byte 0: 0xFF is not valid UTF-8"));
  EXPECT_THAT(error_of("a\x80\x80"), HasSubstr("byte 1: 0x80 0x80"));
  EXPECT_THAT(error_of("\xef\xbb\xbf\xe9t\xe9"), HasSubstr("byte 3: 0xE9 is not valid"));
}

TEST(Text, WhatOnlyLooksLikeUtf8IsRefused) {
  for (const char* bytes : {
           "\xc0\xaf",          // overlong /
           "\xe0\x80\xaf",      // overlong
           "\xf0\x8f\xbf\xbf",  // overlong U+FFFF
           "\xed\xa0\x80",      // a surrogate
           "\xed\xbf\xbf",      // the last one
           "\xf4\x90\x80\x80",  // U+110000
           "\xf5\x80\x80\x80",
           "\xe2\x82",
           "\xf0\x9f\x98",
           "\xc3",
       }) {
    EXPECT_THAT(error_of(std::string("a") + bytes), HasSubstr("byte 1: 0x")) << bytes;
  }
}

TEST(Text, TheEdgesOfEveryLengthAreReadAndWritten) {
  for (const char32_t code : {U'\x0', U'\x7f', U'\x80', U'\u07ff', U'\u0800', U'\ud7ff', U'\ue000',
                              U'\uffff', U'\U00010000', U'\U0010ffff'}) {
    const std::string bytes = to_utf8(code);
    EXPECT_THAT(code_points(bytes, "here"), ElementsAre(code));
    EXPECT_EQ(find_invalid_utf8(bytes), std::string::npos);
  }
}

TEST(Text, CodePointsSayWhereTheyStood) {
  try {
    code_points("a\xff", "--prompt");
    FAIL() << "accepted";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--prompt:1: byte 1: 0xFF is not valid UTF-8"));
  }
}

TEST(Text, AStreamThatFailsIsRefused) {
  std::istringstream stream("abc");
  stream.setstate(std::ios::badbit);
  EXPECT_THROW(read_text(stream, "corpus.txt"), DataError);
}

TEST(Text, TinyShakespeareHas65Characters) {
  PIPEWRIGHT_NEEDS_SHARED("data/tinyshakespeare.txt");
  std::ifstream stream(shared_path("data/tinyshakespeare.txt"), std::ios::binary);
  const TokenText text = read_text(stream, "tinyshakespeare.txt");
  EXPECT_EQ(text.vocabulary.size(), 65u);
  EXPECT_EQ(text.tokens.size(), 1115394u);
}

TEST(Text, TheGoldenTokensAreTheBeginningOfTinyShakespeare) {
  PIPEWRIGHT_NEEDS_SHARED("data/tinyshakespeare.txt");
  PIPEWRIGHT_NEEDS_SHARED("golden/lm_tokens.npy");
  std::ifstream npy(shared_path("golden/lm_tokens.npy"), std::ios::binary);
  const auto golden = read_npy<std::int64_t>(npy, "lm_tokens.npy");
  std::ifstream corpus(shared_path("data/tinyshakespeare.txt"), std::ios::binary);
  std::string beginning(golden.values.size(), '\0');  // it is ASCII: as many bytes as characters
  corpus.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  const TokenText text = read(beginning);
  EXPECT_EQ(text.vocabulary.size(), 48u);
  EXPECT_TRUE(std::ranges::equal(text.tokens, golden.values));
}

}  // namespace
}  // namespace pipewright
