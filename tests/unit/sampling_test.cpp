#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "core/base/error.hpp"
#include "core/base/random.hpp"
#include "core/train/sampling.hpp"

namespace pipewright {
namespace {

using testing::ElementsAre;

constexpr float infinite = std::numeric_limits<float>::infinity();

/// How often each token is drawn at `draws` evenly spaced uniform numbers.
std::vector<int> frequencies(const std::vector<float>& logits, const SamplingOptions& options,
                             int draws) {
  std::vector<int> counts(logits.size());
  for (int i = 0; i < draws; ++i) {
    ++counts[static_cast<std::size_t>(sample_token(logits, options, (i + 0.5) / draws))];
  }
  return counts;
}

TEST(SampleToken, TemperatureZeroTakesTheLikeliestAndOfEqualsTheFirst) {
  const std::vector<float> logits{1, 5, -2, 5};
  for (const double uniform : {1e-9, 0.5, 1 - 1e-9}) {
    EXPECT_EQ(sample_token(logits, {.temperature = 0}, uniform), 1);
  }
}

TEST(SampleToken, AtTemperatureOneProbabilitiesAreTheSoftmax) {
  const std::vector<float> logits{std::log(1.0f), std::log(2.0f), std::log(5.0f)};
  EXPECT_THAT(frequencies(logits, {.temperature = 1}, 800), ElementsAre(100, 200, 500));
}

TEST(SampleToken, TemperatureDividesTheLogits) {
  const std::vector<float> logits{std::log(1.0f), std::log(3.0f)};
  EXPECT_THAT(frequencies(logits, {.temperature = 0.5}, 1000), ElementsAre(100, 900));
  EXPECT_THAT(frequencies(logits, {.temperature = 1e300}, 1000), ElementsAre(500, 500));
  EXPECT_THAT(frequencies(logits, {.temperature = 1e-300}, 1000), ElementsAre(0, 1000));
}

TEST(SampleToken, TopKDrawsAmongTheLikeliestAndOfEqualsAmongTheFirst) {
  const std::vector<float> logits{0, 3, 1, 3, 0};
  EXPECT_THAT(frequencies(logits, {.temperature = 1, .top_k = 2}, 100),
              ElementsAre(0, 50, 0, 50, 0));
  EXPECT_THAT(frequencies(logits, {.temperature = 1, .top_k = 1}, 100),
              ElementsAre(0, 100, 0, 0, 0));
  EXPECT_THAT(frequencies({7, 7, 7, 7}, {.temperature = 1, .top_k = 2}, 100),
              ElementsAre(50, 50, 0, 0));
  EXPECT_EQ(frequencies(logits, {.temperature = 1, .top_k = 99}, 100),
            frequencies(logits, {.temperature = 1}, 100));
}

TEST(SampleToken, ATokenWithoutAnyProbabilityIsNeverDrawn) {
  const std::vector<float> logits{-1e9f, 1, -1e9f};
  for (const double uniform : {1e-300, 0.5, std::nextafter(1.0, 0.0)}) {
    EXPECT_EQ(sample_token(logits, {.temperature = 0.5}, uniform), 1);
  }
}

TEST(SampleToken, LargeLogitsDoNotOverflow) {
  EXPECT_THAT(frequencies({3e38f, 3e38f, -3e38f}, {.temperature = 1}, 100), ElementsAre(50, 50, 0));
}

TEST(SampleToken, ALogitThatIsNoNumberIsRefused) {
  EXPECT_THROW(sample_token(std::vector<float>{1, std::nanf("")}, {}, 0.5), DataError);
  EXPECT_THROW(sample_token(std::vector<float>{infinite, 1}, {.temperature = 0}, 0.5), DataError);
}

/// Four tokens; the next is likeliest the last one plus one.
class Counting : public TextGenerator {
 public:
  std::vector<std::int32_t> encode(std::string_view) const override { return {0}; }
  std::string decode(std::int32_t token) const override { return std::to_string(token); }
  std::vector<float> next(std::span<const std::int32_t> tokens) override {
    lengths.push_back(tokens.size());
    std::vector<float> logits(4, 0);
    logits[static_cast<std::size_t>((tokens.back() + 1) % 4)] = 1;
    return logits;
  }
  std::vector<std::size_t> lengths;
};

std::vector<std::int32_t> written(int count, const SamplingOptions& options, std::uint64_t seed) {
  Counting generator;
  std::vector<std::int32_t> tokens;
  continue_text(generator, {1}, count, options, seed, [&](std::int32_t token) {
    tokens.push_back(token);
    return true;
  });
  return tokens;
}

TEST(ContinueText, EachTokenFollowsFromAllBeforeIt) {
  EXPECT_THAT(written(5, {.temperature = 0}, 0), ElementsAre(2, 3, 0, 1, 2));
  Counting generator;
  continue_text(generator, {1, 2}, 3, {}, 0, [](std::int32_t) { return true; });
  EXPECT_THAT(generator.lengths, ElementsAre(2, 3, 4));
}

TEST(ContinueText, ASeedGivesTheSameTextAndAnotherAnother) {
  EXPECT_EQ(written(50, {}, 7), written(50, {}, 7));
  EXPECT_NE(written(50, {}, 7), written(50, {}, 8));
  // A longer text begins as the shorter one.
  auto longer = written(80, {}, 7);
  longer.resize(50);
  EXPECT_EQ(longer, written(50, {}, 7));
}

TEST(ContinueText, EndsWhenNobodyReadsOn) {
  Counting generator;
  int count = 0;
  continue_text(generator, {1}, 100, {}, 0, [&](std::int32_t) { return ++count < 3; });
  EXPECT_EQ(count, 3);
  EXPECT_EQ(generator.lengths.size(), 3u);
}

}  // namespace
}  // namespace pipewright
