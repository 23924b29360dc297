#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include <map>
#include <sstream>

#include "core/base/error.hpp"
#include "proto/codec/provenance.hpp"

namespace pipewright {
namespace {

class TextFiles : public FileSource {
 public:
  std::unique_ptr<std::istream> open(const std::string& path) override {
    const auto at = texts.find(path);
    if (at == texts.end()) throw DataError(path + ": cannot be opened");
    return std::make_unique<std::istringstream>(at->second);
  }
  std::map<std::string, std::string> texts;
};

TEST(Provenance, Sha256IsThatOfTheStandard) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Sha256 parts;
  parts.update("a");
  parts.update("bc");
  EXPECT_EQ(parts.hex(), sha256_hex("abc"));
}

TEST(Provenance, AJobsHashDependsOnItsContentsAlone) {
  const Value a(Value::Map{{"x", 1}, {"y", Value(Value::Map{{"p", 2.0}, {"q", "t"}})}});
  const Value b(
      Value::Map{{"y", Value(Value::Map{{"q", "t"}, {"p", 2}})}, {"name", Value()}, {"x", 1}});
  EXPECT_EQ(job_sha256(a), job_sha256(b));
  EXPECT_EQ(job_sha256(a), sha256_hex(R"({"x":1,"y":{"p":2,"q":"t"}})"));
}

TEST(Provenance, OpenedFilesAreHashedOnceInOrderAndStillReadWhole) {
  TextFiles inner;
  inner.texts = {{"b", "abc"}, {"a", std::string(1 << 20, 'x')}};
  HashingFiles files(inner);
  for (const char* path : {"b", "a", "b"}) {
    std::stringstream text;
    text << files.open(path)->rdbuf();
    EXPECT_EQ(text.str(), inner.texts[path]);
  }
  ASSERT_EQ(files.files().size(), 2u);
  EXPECT_EQ(files.files()[0], (HashedFile{"b", 3, sha256_hex("abc")}));
  EXPECT_EQ(files.files()[1], (HashedFile{"a", 1 << 20, sha256_hex(inner.texts["a"])}));
  EXPECT_THROW(files.open("missing"), DataError);
}

TEST(Provenance, VersionCommitAndCpuAreKnown) {
  EXPECT_FALSE(program_version().empty());
  EXPECT_FALSE(program_commit().empty());
  EXPECT_FALSE(cpu_type().empty());
}

TEST(Provenance, ABuildIsKnownByTheHashThatItsLinkerMade) {
  const std::string build = program_build();
  ASSERT_THAT(build, testing::MatchesRegex("[0-9a-f]{40}"));
  std::string bytes;
  for (std::size_t i = 0; i < build.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(build.substr(i, 2), nullptr, 16));
  }
  std::ifstream self("/proc/self/exe", std::ios::binary);
  const std::string program{std::istreambuf_iterator<char>(self), {}};
  EXPECT_NE(program.find(bytes), std::string::npos);
}

const Maker on_intel{"0.1.0", "abc", "b1", "Intel"};
const Maker on_amd{"0.1.0", "abc", "b1", "AMD"};
const Maker rebuilt{"0.1.0", "abc", "b2", "Intel"};

TEST(Provenance, RanksThatDifferAreAllNamed) {
  EXPECT_EQ(together({on_intel, on_intel}), on_intel);
  EXPECT_EQ(together({on_intel, on_amd, rebuilt}),
            (Maker{"0.1.0", "abc", "b1 + b2", "AMD + Intel"}));
  EXPECT_EQ(together({on_amd, on_intel}), together({on_intel, on_amd}));
}

TEST(Provenance, MakersComeBackFromTheirList) {
  const std::vector<Maker> makers{on_intel, rebuilt};
  EXPECT_EQ(makers_from(to_value(makers)), makers);
  EXPECT_THAT(makers_from(to_value({})), testing::IsEmpty());
}

TEST(Provenance, OnlyOtherMakersOfEarlierAttemptsAreNoted) {
  Value summary = Value::map();
  add_earlier(summary, {}, on_intel);
  add_earlier(summary, {on_intel}, on_intel);
  EXPECT_EQ(summary, Value::map()) << "the same made all of it";
  for (const Maker& other : {on_amd, rebuilt}) {
    Value noted = Value::map();
    add_earlier(noted, {on_intel, other}, on_intel);
    EXPECT_EQ(noted.at("earlier_attempts"), to_value({other}));
    EXPECT_THAT(noted.at("note").as_text(), testing::HasSubstr("build " + other.build));
    EXPECT_THAT(noted.at("note").as_text(), testing::HasSubstr("on " + other.cpu_type));
    EXPECT_THAT(noted.at("note").as_text(), testing::HasSubstr("and by pipewright 0.1.0"));
  }
}

}  // namespace
}  // namespace pipewright
