#include "core/objectives/transformer/load.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.hpp"
#include "core/data/npy.hpp"
#include "core/data/npy_header.hpp"
#include "core/data/text.hpp"

namespace pipewright::transformer {

namespace {

constexpr std::int64_t vocabulary_max = 1 << 20;

/// What the data is as numbers, and its vocabulary as `facts` has it.
struct Corpus {
  std::string path;
  std::vector<std::int32_t> tokens;
  std::int64_t vocabulary = 0;
  Value vocabulary_fact;  // the characters in their order, or how many numbers there are
};

Corpus load_text(const std::string& path, FileSource& files) {
  TokenText text = read_text(*files.open(path), path);
  Corpus corpus{
      path, std::move(text.tokens), static_cast<std::int64_t>(text.vocabulary.size()), {}};
  std::string characters;
  for (const char32_t c : text.vocabulary) characters += to_utf8(c);
  corpus.vocabulary_fact = std::move(characters);
  return corpus;
}

Corpus load_tokens(const std::string& path, FileSource& files) {
  const NpyArray<std::int64_t> array = read_npy<std::int64_t>(*files.open(path), path);
  if (array.shape.rank != 1 || array.values.empty()) {
    throw DataError(path + ": shape " + npy_shape_text(array.shape) +
                    ", expected (tokens,), at least 1");
  }
  Corpus corpus;
  corpus.path = path;
  corpus.tokens.reserve(array.values.size());
  for (std::size_t i = 0; i < array.values.size(); ++i) {
    const std::int64_t token = array.values[i];
    if (token < 0 || token >= vocabulary_max) {
      throw DataError(path + ": element [" + std::to_string(i) + "]: " + std::to_string(token) +
                      " is no token; they are 0 to " + std::to_string(vocabulary_max - 1));
    }
    corpus.tokens.push_back(static_cast<std::int32_t>(token));
    corpus.vocabulary = std::max(corpus.vocabulary, token + 1);
  }
  corpus.vocabulary_fact = corpus.vocabulary;
  return corpus;
}

Index layers_of(const Value& parameters, int stages) {
  const Index least = std::max(1, stages - 2);
  const Value* given = parameters.find("layers");
  if (given == nullptr) return least;
  const Index layers = given->as_integer();
  if (layers < least) {
    throw ParamError("layers", std::to_string(layers) + " for the " + std::to_string(least) +
                                   " stages between the first and the last, which need at least "
                                   "one each");
  }
  return layers;
}

ModelSizes sizes_of(const Value& parameters, int stages, std::int64_t vocabulary) {
  ModelSizes sizes;
  sizes.vocabulary = vocabulary;
  sizes.sequence_length = parameters.at("sequence_length").as_integer();
  sizes.embedding = parameters.at("embedding").as_integer();
  sizes.heads = parameters.at("heads").as_integer();
  sizes.layers = layers_of(parameters, stages);
  if (sizes.embedding % sizes.heads != 0) {
    throw ParamError("heads", std::to_string(sizes.heads) + " do not divide the embedding, " +
                                  std::to_string(sizes.embedding));
  }
  return sizes;
}

/// Divides the sequences of the corpus.
void set_sequences(Problem& problem, const Corpus& corpus, double validation_fraction) {
  const auto size = static_cast<Index>(corpus.tokens.size());
  const Index all = (size - 1) / problem.sizes.sequence_length;
  if (validation_fraction > 0) {
    const auto share = std::llround(validation_fraction * static_cast<double>(all));
    problem.validation = std::max<Index>(1, share);
  }
  problem.training = all - problem.validation;
  if (problem.training >= problem.batch_size) return;
  throw DataError(
      corpus.path + ": has " + std::to_string(size) + " tokens, " + std::to_string(all) +
      " sequences of " + std::to_string(problem.sizes.sequence_length) + " and what follows" +
      (problem.validation > 0
           ? ", of which " + std::to_string(problem.validation) + " are kept for validation"
           : "") +
      "; a batch needs " + std::to_string(problem.batch_size));
}

}  // namespace

std::vector<ParamSpec> parameters() {
  return {
      ParamSpec::one_of(
          "data", "What is read.",
          {ParamSpec::path_of("text", "UTF-8; every code point that occurs is a token."),
           ParamSpec::path_of("tokens_npy",
                              "NumPy file of the numbers of tokens; vocabulary: the largest + 1.")})
          .needed(),
      ParamSpec::integer_of("batch_size", "Consecutive sequences in one microbatch.", "sequences")
          .at_least(1)
          .needed(),
      ParamSpec::integer_of("sequence_length", "How far the model looks back.", "tokens")
          .at_least(1)
          .at_most(1 << 20)
          .needed(),
      ParamSpec::integer_of("embedding", "Width of the model.")
          .at_least(1)
          .at_most(1 << 16)
          .needed(),
      ParamSpec::integer_of("heads", "Of every attention; they divide the embedding.")
          .at_least(1)
          .needed(),
      ParamSpec::integer_of("layers",
                            "Attention and MLP; without it one per stage between the first and the "
                            "last, at least 1.")
          .at_least(1)
          .at_most(1 << 16),
      ParamSpec::real_of("validation_fraction",
                         "Share of the text, at its end, that is kept from training and evaluated "
                         "beside the full objective.")
          .at_least(0)
          .at_most(0.9)
          .or_default(0.0),
      ParamSpec::integer_of(
          "evaluation_batches",
          "So many batches, evenly spaced over the training text, stand for all of it when the "
          "full "
          "objective is taken, which is then an estimate; 0: all of it is evaluated.",
          "batches")
          .at_least(0)
          .or_default(0),
      ParamSpec::boolean_of("recompute",
                            "Between F and B keep only a stage's input and compute the rest again: "
                            "less memory, the same numbers.")
          .or_default(false)};
}

Problem load(const Value& parameters, const ObjectiveContext& context) {
  const Value& data = parameters.at("data");
  const Value* text = data.find("text");
  Corpus corpus = text != nullptr ? load_text(text->as_text(), context.files)
                                  : load_tokens(data.at("tokens_npy").as_text(), context.files);
  Problem problem;
  problem.sizes = sizes_of(parameters, context.stages, corpus.vocabulary);
  problem.stages = context.stages;
  problem.batch_size = parameters.at("batch_size").as_integer();
  problem.recompute = parameters.at("recompute").as_bool();
  set_sequences(problem, corpus, parameters.at("validation_fraction").as_real());
  problem.evaluation_batches = parameters.at("evaluation_batches").as_integer();
  if (const Index batches = problem.training / problem.batch_size;
      problem.evaluation_batches > batches) {
    throw ParamError("evaluation_batches", std::to_string(problem.evaluation_batches) +
                                               " is above the number of batches, " +
                                               std::to_string(batches));
  }
  problem.facts = Value::map();
  problem.facts.set("layers", problem.sizes.layers);
  problem.facts.set("vocabulary", std::move(corpus.vocabulary_fact));
  problem.tokens = std::make_shared<const std::vector<std::int32_t>>(std::move(corpus.tokens));
  return problem;
}

}  // namespace pipewright::transformer
