#include <algorithm>
#include <string>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/data/text.hpp"
#include "core/objectives/transformer/load.hpp"
#include "core/objectives/transformer/model.hpp"

namespace pipewright::transformer {

namespace {

/// Names of tokens: characters, or where the data was numbers, these with blanks between them.
class Vocabulary {
 public:
  explicit Vocabulary(const Value& fact) {
    if (fact.is_text()) {
      characters_ = code_points(fact.as_text(), "vocabulary");
      size_ = static_cast<std::int64_t>(characters_.size());
      if (!std::is_sorted(characters_.begin(), characters_.end())) {
        throw DataError("vocabulary: its characters are not in their order");
      }
    } else {
      size_ = fact.as_integer();
    }
  }

  std::int64_t size() const { return size_; }

  std::vector<std::int32_t> encode(std::string_view text) const {
    std::vector<std::int32_t> tokens;
    if (characters_.empty()) {
      for (const std::string_view word : split(text, ' ')) {
        if (!word.empty()) tokens.push_back(number(word));
      }
      return tokens;
    }
    for (const char32_t c : code_points(text, "prompt")) {
      const auto at = std::lower_bound(characters_.begin(), characters_.end(), c);
      if (at == characters_.end() || *at != c) {
        throw DataError("prompt: '" + to_utf8(c) + "' does not occur in the text of the training");
      }
      tokens.push_back(static_cast<std::int32_t>(at - characters_.begin()));
    }
    return tokens;
  }

  std::string decode(std::int32_t token) const {
    if (characters_.empty()) return std::to_string(token) + " ";
    return to_utf8(characters_[static_cast<std::size_t>(token)]);
  }

 private:
  std::int32_t number(std::string_view word) const {
    const auto token = parse_integer(word);
    if (!token || *token < 0 || *token >= size_) {
      throw DataError("prompt: '" + std::string(word) + "' is not a token, 0 to " +
                      std::to_string(size_ - 1));
    }
    return static_cast<std::int32_t>(*token);
  }

  std::vector<char32_t> characters_;  // none: tokens are numbers
  std::int64_t size_ = 0;
};

class Generator : public TextGenerator {
 public:
  Generator(Vocabulary vocabulary, const ModelSizes& sizes, Tensor weights)
      : vocabulary_(std::move(vocabulary)),
        model_(sizes, stage_part(1, 0, sizes.layers)),
        weights_(std::move(weights)) {
    if (weights_.dtype() != DType::float32 || weights_.elements() != model_.parameter_count()) {
      throw DataError("weights: " + std::to_string(weights_.elements()) + " numbers of " +
                      std::string(name_of(weights_.dtype())) + "; the model has " +
                      std::to_string(model_.parameter_count()) + " parameters of float32");
    }
  }

  std::vector<std::int32_t> encode(std::string_view text) const override {
    return vocabulary_.encode(text);
  }
  std::string decode(std::int32_t token) const override { return vocabulary_.decode(token); }

  std::vector<float> next(std::span<const std::int32_t> tokens) override {
    PW_CHECK(!tokens.empty(), "a text generator was asked for what follows nothing");
    const auto longest = static_cast<std::size_t>(model_.sizes().sequence_length);
    if (tokens.size() > longest) tokens = tokens.last(longest);
    const auto count = static_cast<Index>(tokens.size());
    const Tensor logits =
        model_.forward(tokens.data(), {1, count}, weights_.data<float>(), {}, work_, false);
    const float* last = logits.data<float>() + (count - 1) * vocabulary_.size();
    return {last, last + vocabulary_.size()};
  }

 private:
  const Vocabulary vocabulary_;
  const Model<float> model_;
  const Tensor weights_;
  Saved work_;
};

}  // namespace

std::unique_ptr<TextGenerator> make_generator(const Value& parameters, int /*stages*/,
                                              const Value& facts, Tensor weights) {
  Vocabulary vocabulary(facts.at("vocabulary"));
  ModelSizes sizes;
  sizes.vocabulary = vocabulary.size();
  sizes.sequence_length = parameters.at("sequence_length").as_integer();
  sizes.embedding = parameters.at("embedding").as_integer();
  sizes.heads = parameters.at("heads").as_integer();
  sizes.layers = facts.at("layers").as_integer();
  return std::make_unique<Generator>(std::move(vocabulary), sizes, std::move(weights));
}

}  // namespace pipewright::transformer
