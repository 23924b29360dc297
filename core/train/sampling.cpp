#include "core/train/sampling.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "core/base/random.hpp"
#include "core/base/text.hpp"

namespace pipewright {

namespace {

/// The `count` tokens with the largest logits, in the order of the tokens.
std::vector<std::int32_t> likeliest(std::span<const float> logits, std::size_t count) {
  std::vector<std::int32_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  if (count >= tokens.size()) return tokens;
  const auto end = tokens.begin() + static_cast<std::ptrdiff_t>(count);
  std::nth_element(tokens.begin(), end, tokens.end(), [&](std::int32_t a, std::int32_t b) {
    const float x = logits[static_cast<std::size_t>(a)];
    const float y = logits[static_cast<std::size_t>(b)];
    return x > y || (x == y && a < b);
  });
  tokens.erase(end, tokens.end());
  std::sort(tokens.begin(), tokens.end());
  return tokens;
}

void check_finite(std::span<const float> logits) {
  PW_CHECK(!logits.empty(), "a token is to be drawn from an empty vocabulary");
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isfinite(logits[i])) continue;
    throw DataError("the model's logit of token " + std::to_string(i) + " is " +
                    format_number(logits[i]) + ": its weights have become too large to write with");
  }
}

}  // namespace

std::int32_t sample_token(std::span<const float> logits, const SamplingOptions& options,
                          double uniform) {
  check_finite(logits);
  const auto largest = std::max_element(logits.begin(), logits.end());
  if (options.temperature == 0) return static_cast<std::int32_t>(largest - logits.begin());
  const std::size_t count =
      options.top_k > 0 ? static_cast<std::size_t>(options.top_k) : logits.size();
  const std::vector<std::int32_t> tokens = likeliest(logits, count);
  // Sums of the same numbers in the same order: the last of them is the whole.
  std::vector<double> sums;
  double sum = 0;
  for (const std::int32_t token : tokens) {
    const double below = static_cast<double>(logits[static_cast<std::size_t>(token)]) - *largest;
    sums.push_back(sum += std::exp(below / options.temperature));
  }
  const auto at = std::upper_bound(sums.begin(), sums.end(), uniform * sum);
  // Only rounding leads past the end: to the last token that adds anything.
  const auto found = at != sums.end() ? at : std::lower_bound(sums.begin(), sums.end(), sum);
  return tokens[static_cast<std::size_t>(found - sums.begin())];
}

void continue_text(TextGenerator& generator, std::vector<std::int32_t> tokens, std::int64_t count,
                   const SamplingOptions& options, std::uint64_t seed,
                   const std::function<bool(std::int32_t)>& write) {
  for (std::int64_t i = 0; i < count; ++i) {
    RandomStream draws(seed, DrawKind::text_sampling, 0, static_cast<std::uint64_t>(i));
    const std::int32_t token = sample_token(generator.next(tokens), options, draws.uniform());
    tokens.push_back(token);
    if (!write(token)) return;
  }
}

}  // namespace pipewright
