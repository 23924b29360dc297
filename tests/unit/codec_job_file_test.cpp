#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "core/base/error.hpp"
#include "core/base/utf8.hpp"
#include "proto/codec/job_file.hpp"

namespace pipewright {
namespace {

Value tree_of(std::string_view text) {
  return JobFile::parse(text, "job.yaml").tree();
}

std::string fault_of(std::string_view text) {
  try {
    JobFile::parse(text, "job.yaml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(JobFile, ScalarsHaveTheTypesOfYaml12) {
  const Value tree = tree_of(R"(
integers: [3, -7, +2, 0x1F, 0o17, 007]
reals: [1e-4, 0.5, .5, 1., -2.5E+3, .inf]
truths: [true, False]
nothing: [null, ~, ]
texts: ["3", '0.5', yes, 1_000, 250us, 1e, "true", .e3, -, 0x, !!str 12]
y: text
)");
  EXPECT_EQ(to_json(tree.at("integers"), -1), "[3,-7,2,31,15,7]");
  const Value::List reals{1e-4, 0.5, 0.5, 1.0, -2500.0, std::numeric_limits<double>::infinity()};
  EXPECT_EQ(tree.at("reals"), Value(reals));
  EXPECT_EQ(tree.at("truths"), Value(Value::List{true, false}));
  for (const Value& value : tree.at("nothing").as_list()) EXPECT_TRUE(value.is_null());
  for (const Value& value : tree.at("texts").as_list()) EXPECT_TRUE(value.is_text());
  EXPECT_EQ(tree.at("y").as_text(), "text");
}

TEST(JobFile, JsonIsAJobFileToo) {
  const Value tree = tree_of("{\"a\":{\"b\":[1,2.5,\"x\\n\\u00e9\"]},\n\t\"c\":null,\"d\":1e-4}");
  EXPECT_EQ(to_json(tree, -1), "{\"a\":{\"b\":[1,2.5,\"x\\n\xc3\xa9\"]},\"c\":null,\"d\":1e-04}");
}

TEST(JobFile, TextThatWasWrittenAsJsonIsReadBackWhateverItsCharacters) {
  std::string text = "# 'a': {b}, [c] - ? | > %YAML & * ! \"\\ ";
  for (char32_t c = 0; c < 0x300; ++c) append_utf8(text, c);
  for (const char32_t c : {U'\u2028', U'\u2029', U'\ufeff', U'\ufffe', U'\U0001F600'}) {
    append_utf8(text, c);
  }
  Value tree = Value::map();
  tree.set("text", text);
  EXPECT_EQ(tree_of(to_json(tree)).at("text").as_text(), text);
  EXPECT_EQ(tree_of(to_json(tree, -1)).at("text").as_text(), text);
}

TEST(JobFile, DuplicateKeysAreRefusedWithTheirPlace) {
  EXPECT_EQ(fault_of("a: 1\nb:\n  c: 2\n  c: 3\n"),
            "job.yaml:4:3: the key 'c' is given a second time");
}

TEST(JobFile, WhatIsNotAMapOfTextKeysIsRefused) {
  EXPECT_EQ(fault_of(""), "job.yaml:1:1: a job file is a map of keys and values, this is nothing");
  EXPECT_NE(fault_of("[1, 2]").find("this is a list"), std::string::npos);
  EXPECT_NE(fault_of("just text").find("this is text"), std::string::npos);
  EXPECT_NE(fault_of("? [a]\n: 1\n").find("a key must be text"), std::string::npos);
  EXPECT_NE(fault_of("~: 1\n").find("a key must be text"), std::string::npos);
}

TEST(JobFile, FaultsOfTheTextSayFileLineAndColumn) {
  EXPECT_EQ(fault_of("a: 1\nb: \"x\xff\"\n"), "job.yaml:2:6: the text is not UTF-8");
  EXPECT_EQ(fault_of("a:\n\tb: 1\n"), "job.yaml:2:1: a tab; YAML is indented with spaces");
  EXPECT_EQ(fault_of("a: 1\n---\nb: 2\n"), "job.yaml:2:1: a second document; a job file has one");
  EXPECT_EQ(fault_of("a: \x04\n"), "job.yaml:1:4: a control character (byte 4)");
  EXPECT_EQ(fault_of("a: [1, 2\nb: 3\n").substr(0, 9), "job.yaml:");
  EXPECT_EQ(fault_of("a: b: c\n").substr(0, 11), "job.yaml:1:");
  EXPECT_EQ(fault_of("a: 99999999999999999999\n"),
            "job.yaml:1:4: the whole number 99999999999999999999 does not fit 64 bits");
  EXPECT_EQ(fault_of("a: !custom 1\n").substr(0, 14), "job.yaml:1:4: ");
}

TEST(JobFile, AliasesAreExpandedAndMergeKeysRefused) {
  const Value tree = tree_of("a: &x {b: [1, 2]}\nc: *x\n");
  EXPECT_EQ(tree.at("c"), tree.at("a"));
  EXPECT_NE(fault_of("a: &x {b: 1}\nc:\n  <<: *x\n").find("merge keys"), std::string::npos);
  EXPECT_NE(fault_of("a: &x [*x]\n"), "");
  EXPECT_NE(fault_of("a: *nowhere\n"), "");
}

TEST(JobFile, BillionLaughsAndEndlessNestingAreRefused) {
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    laughs += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int k = 0; k < 8; ++k) laughs += ", " + before;
    laughs += "]\n";
  }
  EXPECT_NE(fault_of(laughs).find("too much"), std::string::npos) << fault_of(laughs);

  std::string quoted = "a: &a \"" + std::string(1 << 20, 'x') + "\"\nb: [*a";
  for (int i = 0; i < 1000; ++i) quoted += ",*a";
  EXPECT_NE(fault_of(quoted + "]\n").find("too much"), std::string::npos);

  EXPECT_NE(fault_of("a: " + std::string(100'000, '[')), "");
  std::string nested;
  for (int i = 0; i < 1000; ++i) nested += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_NE(fault_of(nested).find("nested"), std::string::npos);
  EXPECT_NE(fault_of("a: \"" + std::string(9 << 20, 'x') + "\"").find("8 MiB"), std::string::npos);
}

TEST(JobFile, SetChangesAPathWithAYamlValue) {
  JobFile file = JobFile::parse("optimizer:\n  sgd: {learning_rate: 0.1}\nseed: 1\n", "job.yaml");
  file.set("optimizer.sgd.learning_rate=1e-3");
  file.set("sweep={a: [1, 2]}");
  file.set("name=");
  EXPECT_EQ(file.tree().at("optimizer").at("sgd").at("learning_rate").as_real(), 1e-3);
  EXPECT_EQ(to_json(file.tree().at("sweep"), -1), "{\"a\":[1,2]}");
  EXPECT_TRUE(file.tree().at("name").is_null());
  EXPECT_EQ(file.where("optimizer.sgd.learning_rate"), "--set optimizer.sgd.learning_rate: ");
  EXPECT_THROW(file.set("seed"), ConfigError);
  EXPECT_THROW(file.set("=3"), ConfigError);
  EXPECT_THROW(file.set("a..b=3"), ConfigError);
  EXPECT_THROW(file.set("seed.x=3"), ConfigError);
  EXPECT_THROW(file.set("seed=[1"), ConfigError);
}

TEST(JobFile, WhereGivesTheLineOfTheNearestKnownAncestor) {
  const JobFile file = JobFile::parse(
      "name: x\ncost:\n  stragglers:\n    - {stage: 1}\n    - {stage: 2}\n", "job.yaml");
  EXPECT_EQ(file.where("cost.stragglers[1].factor"), "job.yaml:5: ");
  EXPECT_EQ(file.where("cost.forward"), "job.yaml:2: ");
  EXPECT_EQ(file.where("objective.logistic"), "job.yaml: ");
}

std::string check_fault_of(const JobFile& file) {
  try {
    file.checked();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

constexpr std::string_view a_job = R"(objective:
  logistic: {data: {libsvm: a9a.libsvm}, batch_size: 64}
schedule:
  pipedream: {stages: 4, microbatches: 20}
optimizer:
  sgd:
    learnig_rate: 0.1
)";

TEST(JobFile, ChecksNameFileLineAndTheNearestKey) {
  JobFile file = JobFile::parse(a_job, "job.yaml");
  EXPECT_EQ(check_fault_of(file),
            "job.yaml:7: optimizer.sgd.learnig_rate: unknown key 'learnig_rate', did you mean "
            "'learning_rate'?");
  file.set("optimizer={sgd: {learning_rate: 0.1}}");
  EXPECT_EQ(check_fault_of(file), "");
  file.set("schedule.pipedream.stages=0");
  EXPECT_TRUE(
      check_fault_of(file).starts_with("--set schedule.pipedream.stages: must be at least 1"))
      << check_fault_of(file);
}

TEST(JobFile, PathsAreMeantFromTheFilesFolder) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("pipewright_job_file_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string path = folder / "job.yaml";
  std::ofstream(path) << a_job;
  JobFile file = JobFile::read(path);
  std::filesystem::remove_all(folder);
  file.set("optimizer={sgd: {learning_rate: 1}}");
  const Value checked = file.checked();
  EXPECT_EQ(find_path(checked, "objective.logistic.data.libsvm")->as_text(), folder / "a9a.libsvm");
  file.set("objective.logistic.data.libsvm=/data/a9a.libsvm");
  EXPECT_EQ(find_path(file.checked(), "objective.logistic.data.libsvm")->as_text(),
            "/data/a9a.libsvm");
}

TEST(JobFile, AFileThatCannotBeReadIsNamed) {
  EXPECT_THROW(JobFile::read("/nowhere/job.yaml"), ConfigError);
  EXPECT_THROW(JobFile::read(std::filesystem::temp_directory_path()), ConfigError);
}

TEST(JobFile, MutatedFilesAreRefusedOrReadButNeverCrash) {
  const std::string valid =
      "name: \"a \\u00e9\"\nobjective: &o\n  logistic: {data: {libsvm: a.txt}, l2: 1e-4}\nlist:\n"
      "  - 1\n  - *o\n  - |\n    block\n  - >-\n    folded\n# comment\nother: !!str 3\n";
  std::mt19937 random(11);
  const std::string marks = "{}[]:,-?&*#!|>'\"%@` \n\t<~0";
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = valid;
    for (std::uint32_t n = random() % 5 + 1; n > 0; --n) {
      const std::size_t at = random() % text.size();
      if (random() % 2 == 0) {
        text[at] = marks[random() % marks.size()];
      } else {
        text.insert(at, 1, marks[random() % marks.size()]);
      }
    }
    if (!fault_of(text).empty()) ++refused;
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace pipewright
