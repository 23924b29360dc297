// pipewright sample: a text from a run, as real processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/data/text.hpp"
#include "proto/codec/job_file.hpp"
#include "tests/e2e/processes.hpp"

namespace pipewright::e2e {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string program = std::string(PIPEWRIGHT_BINARY_DIR) + "/bin/pipewright";

constexpr const char* language_model = R"(name: round and round
objective:
  transformer:
    {data: {text: round.txt}, batch_size: 8, sequence_length: 9, embedding: 16, heads: 2}
schedule:
  pipedream: {stages: 3, microbatches: 300}
optimizer: {adamw: {learning_rate: 0.01}}
)";

constexpr const char* quadratic = R"(objective:
  quadratic: {generate: {kind: random, examples: 60, parameters: 24}, batch_size: 5}
schedule:
  pipedream: {stages: 4, microbatches: 30}
optimizer: {sgd: {learning_rate: 0.01}}
)";

Outcome pipewright(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), program);
  return run(arguments);
}

/// One folder with one trained model for all of these tests.
class Sample : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string name = (fs::temp_directory_path() / "pipewright-sample-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    std::string text;
    for (int i = 0; i < 200; ++i) text += "abcd\u00e9fg\n";
    write("round.txt", text);
    write("job.yaml", language_model);
    const Outcome trained = pipewright({"run", path("job.yaml"), "--out", path("model")});
    ASSERT_EQ(trained.status, 0) << trained.err;
  }
  static void TearDownTestSuite() { fs::remove_all(folder_); }

  static void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }
  static std::string path(const std::string& name) { return (folder_ / name).string(); }

  static Outcome sample(std::vector<std::string> arguments, const std::string& run = "model") {
    arguments.insert(arguments.begin(), {"sample", path(run)});
    return pipewright(std::move(arguments));
  }

  /// What standard error says of arguments that are refused.
  static std::string refusal(std::vector<std::string> arguments, const std::string& run = "model") {
    const Outcome outcome = sample(std::move(arguments), run);
    EXPECT_EQ(outcome.status, 2) << outcome.out << outcome.err;
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  }

  static fs::path folder_;
};

fs::path Sample::folder_;

TEST_F(Sample, WritesWhatTheModelHasLearned) {
  const Outcome outcome = sample({"--prompt", "abc", "--tokens", "13", "--temperature", "0"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "abcd\u00e9fg\nabcd\u00e9fg\n\n");
  EXPECT_EQ(outcome.err, "");
}

TEST_F(Sample, ASeedGivesTheSameTextAndAnotherSeedAnother) {
  const auto written = [](const char* seed) {
    return sample({"--prompt", "ab", "--tokens", "120", "--temperature", "4", "--seed", seed}).out;
  };
  const std::string seven = written("7");
  EXPECT_THAT(seven, StartsWith("ab"));
  EXPECT_EQ(code_points(seven, "out").size(), 2u + 120u + 1u) << "prompt, tokens, end of line";
  EXPECT_EQ(written("7"), seven);
  EXPECT_NE(written("8"), seven);
}

TEST_F(Sample, OneLikeliestTokenIsTheGreedyChoice) {
  const Outcome greedy = sample({"--prompt", "a", "--tokens", "40", "--temperature", "0"});
  const Outcome one = sample({"--prompt", "a", "--tokens", "40", "--top-k", "1", "--seed", "3"});
  EXPECT_EQ(greedy.out, one.out);
}

TEST_F(Sample, WithoutAPromptATextBeginsAsALineDoes) {
  const Outcome outcome = sample({"--tokens", "8", "--temperature", "0"});
  EXPECT_EQ(outcome.out, "abcd\u00e9fg\n\n");
}

TEST_F(Sample, ReadsAPromptFromStandardInput) {
  const Outcome outcome = run({"/bin/sh", "-c",
                               "printf abc | \"$0\" sample \"$1\" --prompt - --tokens 2 "
                               "--temperature 0",
                               program, path("model")});
  EXPECT_EQ(outcome.out, "abcd\u00e9\n") << outcome.err;
}

TEST_F(Sample, TheJsonFormHoldsTheSameText) {
  const std::vector<std::string> arguments{"--prompt",      "ab", "--tokens", "30",
                                           "--temperature", "4",  "--seed",   "2"};
  std::vector<std::string> as_json = arguments;
  as_json.push_back("--json");
  const Value answer = JobFile::parse(sample(as_json).out, "output").tree();
  EXPECT_EQ(answer.at("prompt").as_text(), "ab");
  EXPECT_EQ(answer.at("tokens").as_integer(), 30);
  EXPECT_EQ("ab" + answer.at("text").as_text() + "\n", sample(arguments).out);
}

TEST_F(Sample, ARunThatWasReplayedWritesTheSame) {
  ASSERT_EQ(pipewright({"replay", path("model"), "--out", path("again")}).status, 0);
  EXPECT_EQ(sample({"--temperature", "4"}, "again").out, sample({"--temperature", "4"}).out);
}

TEST_F(Sample, PromptsThatTheModelCannotReadAreRefused) {
  EXPECT_THAT(refusal({"--prompt", "abz"}), HasSubstr("'z'"));
  EXPECT_THAT(refusal({"--prompt", "ab\u00e8"}), HasSubstr("'\u00e8'"));
  EXPECT_THAT(refusal({"--prompt", "a\xff"}), HasSubstr("0xFF is not valid UTF-8"));
}

TEST_F(Sample, ArgumentsOutOfRangeAreRefused) {
  for (const char* option : {"--tokens", "--temperature", "--top-k", "--seed"}) {
    const Outcome outcome = sample({option, "-1"});
    EXPECT_EQ(outcome.status, 2) << option;
    EXPECT_THAT(outcome.err, HasSubstr(option));
  }
}

TEST_F(Sample, ATemperatureIsANumber) {
  for (const char* temperature : {"nan", "inf"}) {
    EXPECT_THAT(refusal({"--temperature", temperature}), HasSubstr("--temperature"));
  }
}

TEST_F(Sample, OtherObjectivesWriteNoText) {
  write("quadratic.yaml", quadratic);
  ASSERT_EQ(pipewright({"run", path("quadratic.yaml"), "--out", path("quadratic")}).status, 0);
  EXPECT_THAT(refusal({}, "quadratic"),
              HasSubstr("the run's objective is 'quadratic', which writes no text; `sample` is for "
                        "language models (transformer)"));
}

TEST_F(Sample, ARunThatDivergedHasNoWeights) {
  ASSERT_EQ(pipewright({"run", path("job.yaml"), "--out", path("diverged"), "--set",
                        "optimizer.adamw.learning_rate=1e30"})
                .status,
            0);
  EXPECT_THAT(refusal({}, "diverged"), HasSubstr("the run diverged at tick "));
}

TEST_F(Sample, OfManyRunsOneIsToBeNamed) {
  ASSERT_EQ(pipewright({"run", path("job.yaml"), "--out", path("many"), "--set", "repeats=2",
                        "--set", "schedule.pipedream.microbatches=5"})
                .status,
            0);
  EXPECT_THAT(refusal({}, "many"),
              HasSubstr("sample from one of them, as " + path("many") + "/run-0000"));
  EXPECT_EQ(sample({"--tokens", "3"}, "many/run-0001").status, 0);
}

TEST_F(Sample, FoldersWithoutARunOrItsWeightsAreRefused) {
  EXPECT_THAT(refusal({}, "nowhere"), HasSubstr("no run lies there"));
  fs::copy(path("model"), path("broken"));
  write("broken/weights.npy", "not numbers");
  EXPECT_THAT(refusal({}, "broken"), HasSubstr("weights.npy"));
  fs::remove(path("broken/weights.npy"));
  EXPECT_THAT(refusal({}, "broken"), HasSubstr("has no weights.npy"));
}

}  // namespace
}  // namespace pipewright::e2e
