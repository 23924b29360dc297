#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>

#include "core/base/random.hpp"
#include "core/data/text.hpp"
#include "core/objectives/transformer/problem.hpp"
#include "core/train/run.hpp"
#include "tests/support/chain.hpp"
#include "tests/support/heap_count.hpp"
#include "tests/support/memory_files.hpp"

namespace pipewright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using transformer::Problem;

/// `count` tokens below `vocabulary`, of which the largest occurs.
std::vector<double> some_tokens(int count, int vocabulary) {
  RandomStream draws(2, DrawKind::generated_data);
  std::vector<double> tokens{static_cast<double>(vocabulary - 1)};
  while (tokens.size() < static_cast<std::size_t>(count)) {
    tokens.push_back(static_cast<double>(draws.below(static_cast<std::uint64_t>(vocabulary))));
  }
  return tokens;
}

MemoryFiles files_with(const std::vector<double>& tokens) {
  MemoryFiles files;
  files.put("t.npy", npy_bytes("(" + std::to_string(tokens.size()) + ",)", tokens));
  return files;
}

/// Sequences of 5, width 6, 3 heads, vocabulary 7, batches of 2.
Value small_parameters(Value::Map more = {}) {
  Value parameters = Value::map();
  set_path(parameters, "data.tokens_npy", "t.npy");
  parameters.set("batch_size", 2);
  parameters.set("sequence_length", 5);
  parameters.set("embedding", 6);
  parameters.set("heads", 3);
  for (auto& [key, value] : more) parameters.set(key, std::move(value));
  return parameters;
}

std::unique_ptr<Objective> small_objective(int stages, Value::Map more = {}, int tokens = 38) {
  MemoryFiles files = files_with(some_tokens(tokens, 7));
  return load_objective("transformer", small_parameters(std::move(more)), stages, files);
}

Problem small_problem(int stages, Index layers, Index sequence_length = 5) {
  Problem problem;
  problem.sizes = {7, sequence_length, 6, 3, layers};
  problem.stages = stages;
  problem.batch_size = 2;
  problem.training = 7;
  auto tokens = std::make_shared<std::vector<std::int32_t>>();
  for (const double t : some_tokens(static_cast<int>(7 * sequence_length + 1), 7)) {
    tokens->push_back(static_cast<std::int32_t>(t));
  }
  problem.tokens = std::move(tokens);
  return problem;
}

/// Starting weights far from the flat start, so that every part of the gradient counts.
template <class T>
void set_weights(Chain& chain) {
  std::uint64_t at = 0;
  for (Tensor& block : chain.weights) {
    for (std::int64_t i = 0; i < block.elements(); ++i) {
      block.data<T>()[i] =
          static_cast<T>(0.4 * RandomStream(9, DrawKind::generated_data, 0, at++).normal());
    }
  }
}

template <class T>
std::vector<T> all_gradients(const Chain& chain) {
  std::vector<T> all;
  for (const Tensor& gradient : chain.gradients) {
    const T* numbers = gradient.data<T>();
    all.insert(all.end(), numbers, numbers + gradient.elements());
  }
  return all;
}

TEST(Transformer, HasTheGradientOfItsLossInEveryParameter) {
  for (const Index sequence_length : {1, 5}) {
    for (const int stages : {1, 3}) {
      const auto objective =
          transformer::make_objective<double>(small_problem(stages, 2, sequence_length));
      Chain chain(*objective);
      set_weights<double>(chain);
      chain.forward(Batch(1));
      chain.backward(Batch(1));
      for (std::size_t s = 0; s < chain.models.size(); ++s) {
        for (std::int64_t i = 0; i < chain.weights[s].elements(); ++i) {
          static constexpr double step = 1e-5;
          double& w = chain.weights[s].data<double>()[i];
          const double start = w;
          w = start + step;
          const double above = chain.forward(Batch(1));
          w = start - step;
          const double below = chain.forward(Batch(1));
          w = start;
          const double expected = chain.gradients[s].data<double>()[i];
          ASSERT_NEAR((above - below) / (2 * step), expected, 1e-8 * (1 + std::abs(expected)))
              << "stage " << s << ", parameter " << i;
        }
      }
    }
  }
}

TEST(Transformer, GivesTheSameWhateverTheNumberOfStages) {
  const auto at = [](int stages) {
    const auto objective = transformer::make_objective<float>(small_problem(stages, 4));
    Chain chain(*objective);
    set_weights<float>(chain);
    const double loss = chain.forward(Batch(2));
    chain.backward(Batch(2));
    return std::tuple{loss, chain.evaluate(1), all_gradients<float>(chain)};
  };
  const auto [loss, value, gradients] = at(1);
  for (const int stages : {2, 3, 4, 6}) {
    const auto [its_loss, its_value, its_gradients] = at(stages);
    EXPECT_FLOAT_EQ(its_loss, loss) << stages;
    EXPECT_FLOAT_EQ(its_value, value) << stages;
    ASSERT_EQ(its_gradients.size(), gradients.size());
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      ASSERT_NEAR(its_gradients[i], gradients[i], 1e-6) << stages << " stages, parameter " << i;
    }
  }
}

TEST(Transformer, StartsWithTheSameWeightsWhateverTheNumberOfStages) {
  const auto at = [](int stages) {
    Chain chain(*small_objective(stages, {{"layers", 4}}));
    chain.initialise_random(5);
    std::vector<float> all;
    for (const Tensor& w : chain.weights) {
      all.insert(all.end(), w.data<float>(), w.data<float>() + w.elements());
    }
    return all;
  };
  const auto weights = at(1);
  for (const int stages : {2, 3, 5, 6}) EXPECT_EQ(at(stages), weights);
}

TEST(Transformer, StartsAsGpt2Does) {
  const auto objective = small_objective(3, {{"embedding", 48}, {"layers", 2}});
  Chain chain(*objective);
  chain.initialise_random(1);
  const auto deviation = [&](std::size_t stage, Index first, Index count) {
    double square = 0;
    for (Index i = first; i < first + count; ++i) {
      square += std::pow(chain.weights[stage].data<float>()[i], 2);
    }
    return std::sqrt(square / static_cast<double>(count));
  };
  const Index d = 48;
  EXPECT_NEAR(deviation(0, 0, 12 * d), 0.02, 0.002);
  const float* layer = chain.weights[1].data<float>();
  for (Index i = 0; i < d; ++i) EXPECT_EQ(layer[i], 1);
  for (Index i = 0; i < d; ++i) EXPECT_EQ(layer[d + i], 0);
  EXPECT_NEAR(deviation(1, 2 * d, 3 * d * d), 0.02, 0.001);
  EXPECT_EQ(layer[2 * d + 3 * d * d], 0);  // attn.c_attn.bias
  EXPECT_NEAR(deviation(1, 5 * d + 3 * d * d, d * d), 0.02 / 2, 0.001);
  EXPECT_NEAR(deviation(1, 12 * d + 8 * d * d, 4 * d * d), 0.02 / 2, 0.001);
}

TEST(Transformer, SpreadsLayersOverStages) {
  const Index embeddings = (7 + 5) * 6, layer = 12 * 36 + 13 * 6, head = (2 + 7) * 6;
  const auto blocks = [](int stages, int layers) {
    Value::Map more;
    if (layers > 0) more.emplace_back("layers", layers);
    return small_objective(stages, std::move(more))->shape().block_parameters;
  };
  EXPECT_THAT(blocks(1, 0), ElementsAre(embeddings + layer + head));
  EXPECT_THAT(blocks(2, 0), ElementsAre(embeddings + layer, head));
  EXPECT_THAT(blocks(2, 5), ElementsAre(embeddings + 3 * layer, 2 * layer + head));
  EXPECT_THAT(blocks(4, 0), ElementsAre(embeddings, layer, layer, head));
  EXPECT_THAT(blocks(5, 7), ElementsAre(embeddings, 3 * layer, 2 * layer, 2 * layer, head));
}

TEST(Transformer, RecomputesTheSameBitsFromItsInputAlone) {
  for (const int stages : {1, 2, 4}) {
    const auto kept = small_objective(stages, {{"layers", 4}});
    const auto recomputed = small_objective(stages, {{"layers", 4}, {"recompute", true}});
    Chain a(*kept), b(*recomputed);
    for (Chain* chain : {&a, &b}) set_weights<float>(*chain);
    EXPECT_EQ(a.forward(Batch(1)), b.forward(Batch(1)));
    for (std::size_t s = 0; s < a.saved.size(); ++s) {
      EXPECT_EQ(b.saved[s].bytes(), s == 0 ? 0 : 2 * 5 * 6 * sizeof(float));
      EXPECT_TRUE(s == 0 || a.saved[s].bytes() > b.saved[s].bytes());
    }
    a.backward(Batch(1));
    b.backward(Batch(1));
    EXPECT_EQ(all_gradients<float>(a), all_gradients<float>(b));
  }
}

TEST(Transformer, LeftOverSequencesCountInTheObjectiveAndNeverTrain) {
  // 7 sequences: three batches of two, and one that is left over.
  const auto objective = small_objective(2);
  Chain chain(*objective);
  set_weights<float>(chain);
  EXPECT_EQ(chain.shape.examples, 7);
  EXPECT_EQ(chain.shape.batches, 3);
  EXPECT_EQ(chain.shape.tokens_per_batch, 10);
  EXPECT_EQ(chain.models[0]->evaluation_parts(), 4);
  const auto one_by_one = small_objective(2, {{"batch_size", 1}});
  Chain single(*one_by_one);
  set_weights<float>(single);
  double sum = 0;
  for (int b = 0; b < 7; ++b) sum += single.forward(Batch(b));
  const Evaluation value = chain.evaluation(1);
  EXPECT_NEAR(value.objective, sum / 7, 1e-6);
  EXPECT_FALSE(value.validation);
}

TEST(Transformer, KeepsTheEndOfTheTextForValidation) {
  const auto all = small_objective(3, {{"batch_size", 1}});
  Chain whole(*all);
  set_weights<float>(whole);
  for (const auto& [fraction, kept] : {std::pair{0.01, 1}, {0.3, 2}, {0.5, 4}}) {
    const auto objective = small_objective(3, {{"validation_fraction", fraction}});
    Chain chain(*objective);
    set_weights<float>(chain);
    EXPECT_EQ(chain.shape.examples, 7 - kept);
    EXPECT_EQ(chain.shape.batches, (7 - kept) / 2);
    double training = 0, validation = 0;
    for (int b = 0; b < 7; ++b) (b < 7 - kept ? training : validation) += whole.forward(Batch(b));
    const Evaluation value = chain.evaluation(1);
    EXPECT_NEAR(value.objective, training / (7 - kept), 1e-6);
    ASSERT_TRUE(value.validation);
    EXPECT_NEAR(*value.validation, validation / kept, 1e-6);
  }
}

TEST(Transformer, EvaluatesEvenlySpacedBatchesWhereThatIsAsked) {
  const auto all = small_objective(3, {{"batch_size", 1}});
  Chain whole(*all);
  set_weights<float>(whole);
  const auto objective =
      small_objective(3, {{"validation_fraction", 0.01}, {"evaluation_batches", 2}});
  Chain chain(*objective);
  set_weights<float>(chain);
  EXPECT_EQ(chain.shape.batches, 3);
  EXPECT_EQ(chain.models[0]->evaluation_parts(), 3) << "batches 0 and 1, and the validation";
  double sum = 0;
  for (int b = 0; b < 4; ++b) sum += whole.forward(Batch(b));
  const Evaluation value = chain.evaluation(1);
  EXPECT_NEAR(value.objective, sum / 4, 1e-6);
  EXPECT_NEAR(value.validation.value(), whole.forward(Batch(6)), 1e-6);
}

TEST(Transformer, ReadsTheCharactersOfAText) {
  MemoryFiles files;
  files.put("a.txt", "Zwölf Boxkämpfer jagen Viktor");
  const Value parameters = small_parameters({{"data", Value(Value::Map{{"text", "a.txt"}})}});
  const auto objective = load_objective("transformer", parameters, 3, files);
  EXPECT_EQ(objective->shape().examples, 5);  // 29 characters: 28 have one that follows
  EXPECT_EQ(objective->shape().facts.at("vocabulary"), Value(" BVZaefgijklmnoprtwxäö"));
  EXPECT_EQ(objective->shape().facts.at("layers"), Value(1));
}

/// A generator with the weights of the chain.
std::unique_ptr<TextGenerator> generator_of(Chain& chain, const Value& parameters) {
  Tensor weights(DType::float32, {chain.shape.parameters()});
  float* to = weights.data<float>();
  for (const Tensor& block : chain.weights) {
    to = std::copy_n(block.data<float>(), block.elements(), to);
  }
  return ObjectiveRegistry::instance()
      .at("transformer")
      .generator(parameters, chain.shape.stages, chain.shape.facts, std::move(weights));
}

TEST(Transformer, GeneratesFromTheModelThatWasTrained) {
  const auto objective = small_objective(4, {{"batch_size", 1}});
  Chain chain(*objective);
  set_weights<float>(chain);
  const auto generator = generator_of(chain, small_parameters());
  // The loss of a sequence by its logits, token by token.
  const auto tokens = some_tokens(38, 7);
  std::vector<std::int32_t> seen{1, 2, 3, 4, 5, 6, 0};  // looked at no more once there are 5 behind
  double loss = 0;
  for (std::size_t i = 0; i < 5; ++i) {
    std::vector<std::int32_t> prompt;
    for (std::size_t j = 0; j <= i; ++j) prompt.push_back(static_cast<std::int32_t>(tokens[5 + j]));
    if (i == 4) prompt.insert(prompt.begin(), seen.begin(), seen.end());
    const auto logits = generator->next(prompt);
    ASSERT_EQ(logits.size(), 7u);
    double total = 0;
    for (const float z : logits) total += std::exp(static_cast<double>(z));
    loss += std::log(total) - logits[static_cast<std::size_t>(tokens[5 + i + 1])];
  }
  EXPECT_NEAR(loss / 5, chain.forward(Batch(1)), 1e-6);
  EXPECT_THAT(generator->encode("3 0 6"), ElementsAre(3, 0, 6));
  EXPECT_EQ(generator->decode(3), "3 ");
  EXPECT_THROW(generator->encode("7"), DataError);
}

TEST(Transformer, GeneratesCharactersOfTheText) {
  MemoryFiles files;
  files.put("a.txt", "aäbäaäbäaäbäaäbäaäbäaäbä");
  const Value parameters = small_parameters({{"data", Value(Value::Map{{"text", "a.txt"}})}});
  const auto objective = load_objective("transformer", parameters, 2, files);
  Chain chain(*objective);
  chain.initialise_random(1);
  const auto generator = generator_of(chain, parameters);
  EXPECT_THAT(generator->encode("bäa"), ElementsAre(1, 2, 0));
  EXPECT_EQ(generator->decode(2), "ä");
  try {
    generator->encode("abc");
    ADD_FAILURE();
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "prompt: 'c' does not occur in the text of the training");
  }
  EXPECT_THROW(ObjectiveRegistry::instance()
                   .at("transformer")
                   .generator(parameters, 2, chain.shape.facts, Tensor(DType::float32, {3})),
               DataError);
}

std::string error_of(const Value& parameters, FileSource& files, int stages = 2) {
  try {
    load_objective("transformer", parameters, stages, files);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Transformer, RefusesWhatDoesNotFit) {
  MemoryFiles files = files_with(some_tokens(38, 7));
  EXPECT_EQ(error_of(small_parameters({{"heads", 4}}), files),
            "heads: 4 do not divide the embedding, 6");
  EXPECT_EQ(error_of(small_parameters({{"layers", 2}}), files, 5),
            "layers: 2 for the 3 stages between the first and the last, which need at least one "
            "each");
  EXPECT_EQ(error_of(small_parameters({{"batch_size", 8}}), files),
            "t.npy: has 38 tokens, 7 sequences of 5 and what follows; a batch needs 8");
  EXPECT_EQ(error_of(small_parameters({{"batch_size", 7}, {"validation_fraction", 0.01}}), files),
            "t.npy: has 38 tokens, 7 sequences of 5 and what follows, of which 1 are kept for "
            "validation; a batch needs 7");
  files.put("t.npy", npy_bytes("(4,)", {1, 2, -3, 4}));
  EXPECT_EQ(error_of(small_parameters(), files),
            "t.npy: element [2]: -3 is no token; they are 0 to 1048575");
  files.put("t.npy", npy_bytes("(2, 2)", {1, 2, 3, 4}));
  EXPECT_EQ(error_of(small_parameters(), files),
            "t.npy: shape (2, 2), expected (tokens,), at least 1");
  files.put("t.npy", npy_bytes("(1,)", {0}));
  EXPECT_THAT(error_of(small_parameters(), files), HasSubstr("a batch needs 2"));
}

TEST(Transformer, RefusesTextsThatAreNone) {
  MemoryFiles files;
  const Value parameters = small_parameters({{"data", Value(Value::Map{{"text", "a.txt"}})}});
  files.put("a.txt", "");
  EXPECT_THAT(error_of(parameters, files), HasSubstr("a.txt"));
  files.put("a.txt", "abc\nd\xff");
  EXPECT_THAT(error_of(parameters, files), HasSubstr("a.txt:2"));
  files.put("a.txt", "too short");
  EXPECT_EQ(error_of(parameters, files),
            "a.txt: has 9 tokens, 1 sequences of 5 and what follows; a batch needs 2");
}

/// The counts at the losses of two microbatches.
class CountsAt : public RunSink {
 public:
  CountsAt(std::int64_t from, std::int64_t to) : from_(from), to_(to) {}
  void loss(Tick, Microbatch m, double) override {
    if (m.value == from_) heap_ = heap_allocations(), buffers_ = Buffer::system_allocations();
    if (m.value == to_) {
      heap_ = heap_allocations() - heap_;
      buffers_ = Buffer::system_allocations() - buffers_;
    }
  }
  long heap() const { return heap_; }
  std::int64_t buffers() const { return buffers_; }

 private:
  std::int64_t from_, to_;
  long heap_ = 0;
  std::int64_t buffers_ = 0;
};

TEST(Transformer, AllocatesNothingPerMicrobatchInSteadyState) {
  for (const bool recompute : {false, true}) {
    // Wide enough for matrix products that need working space: 64 x 256 by 256 x 64 and more.
    MemoryFiles files = files_with(some_tokens(2000, 65));
    Value job = Value::map();
    set_path(job, "objective.transformer",
             small_parameters({{"batch_size", 8},
                               {"sequence_length", 32},
                               {"embedding", 64},
                               {"heads", 2},
                               {"recompute", recompute}}));
    set_path(job, "schedule.pipedream.stages", 4);
    set_path(job, "schedule.pipedream.microbatches", 300);
    set_path(job, "optimizer.sgd.learning_rate", 0.1);
    CountsAt counts(100, 200);
    ASSERT_GT(heap_allocations(), 0) << "nothing is counted";
    run_in_process(JobConfig::from(check_job(job)), files, {&counts});
    EXPECT_EQ(counts.buffers(), 0);
    EXPECT_LT(counts.heap(), 100) << "recompute: " << recompute;
  }
}

}  // namespace
}  // namespace pipewright
