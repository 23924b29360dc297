#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <tuple>

#include "core/base/random.hpp"
#include "core/base/text.hpp"
#include "core/data/npy.hpp"
#include "tests/support/chain.hpp"
#include "tests/support/heap_count.hpp"
#include "tests/support/memory_files.hpp"
#include "tests/support/shared.hpp"

namespace pipewright {
namespace {

using testing::HasSubstr;

Value map_of(Value::Map entries) {
  return Value(std::move(entries));
}
Value npy_data() {
  return map_of({{"npy", map_of({{"x", "X.npy"}, {"y", "y.npy"}})}});
}
Value libsvm_data() {
  return map_of({{"libsvm", "a.libsvm"}});
}

/// Loads it; gives the message of its error.
std::string error_of(const std::string& kind, const Value& parameters, FileSource& files,
                     int stages = 2) {
  try {
    load_objective(kind, parameters, stages, files);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

MemoryFiles small_files() {
  MemoryFiles files;
  files.put("X.npy", npy_bytes("(3, 2)", {1, 2, 3, 4, 5, 6}));
  files.put("y.npy", npy_bytes("(3,)", {1, 0, 1}));
  files.put("a.libsvm", "1 1:1 2:2\n-1 1:3 2:4\n1 1:5 2:6\n");
  return files;
}

struct Golden {
  std::string kind;
  std::string name;
  int stages;
};

class GoldenObjective : public testing::TestWithParam<Golden> {
 protected:
  void SetUp() override { PIPEWRIGHT_NEEDS_SHARED("golden/" + GetParam().name + ".json"); }
  std::string path(const std::string& end) const {
    return shared_path("golden/" + GetParam().name + end);
  }

  double number(const std::string& key) const {
    std::ifstream in(path(".json"));
    std::ostringstream text;
    text << in.rdbuf();
    const std::string all = text.str();
    const std::size_t at = all.find("\"" + key + "\": ");
    if (at == std::string::npos) return 0;  // l2 of a quadratic
    const std::size_t start = at + key.size() + 4;
    return parse_real(trim(std::string_view(all).substr(start, all.find(',', start) - start)))
        .value();
  }

  Value parameters() const {
    Value value =
        map_of({{"data", map_of({{"npy", map_of({{"x", path("_X.npy")}, {"y", path("_y.npy")}})}})},
                {"batch_size", 5}});
    if (GetParam().kind == "logistic") value.set("l2", number("l2"));
    return value;
  }

  /// The objective and its gradient straight from their definition, in long double.
  struct Reference {
    long double value = 0;
    std::vector<long double> gradient;
  };
  Reference reference(const std::vector<double>& w) const {
    DiskFiles files;
    const auto x = read_npy<double>(*files.open(path("_X.npy")), "X");
    const auto y = read_npy<double>(*files.open(path("_y.npy")), "y");
    const std::size_t n = y.values.size();
    const std::size_t d = w.size();
    const long double l2 = number("l2");
    Reference out;
    out.gradient.resize(d);
    for (std::size_t i = 0; i < n; ++i) {
      long double z = 0;
      for (std::size_t j = 0; j < d; ++j) z += static_cast<long double>(x.values[i * d + j]) * w[j];
      long double dz = z - y.values[i];
      if (GetParam().kind == "logistic") {
        out.value += std::log(1 + std::exp(z)) - y.values[i] * z;
        dz = 1 / (1 + std::exp(-z)) - y.values[i];
      } else {
        out.value += dz * dz / 2;
      }
      for (std::size_t j = 0; j < d; ++j) out.gradient[j] += dz * x.values[i * d + j] / n;
    }
    out.value /= n;
    for (std::size_t j = 0; j < d; ++j) {
      out.value += l2 / 2 * w[j] * w[j];
      out.gradient[j] += l2 * w[j];
    }
    return out;
  }
};

TEST_P(GoldenObjective, HasTheObjectiveAtZeroThatTheAuthorsHave) {
  DiskFiles files;
  const auto objective = load_objective(GetParam().kind, parameters(), GetParam().stages, files);
  Chain chain(*objective);
  const double expected = number("objective_at_zero");
  EXPECT_NEAR(chain.evaluate(1), expected, 1e-12 * expected);
  EXPECT_EQ(chain.shape.examples, static_cast<std::int64_t>(number("num_examples")));
  EXPECT_EQ(chain.shape.parameters(), static_cast<std::int64_t>(number("num_parameters")));
}

TEST_P(GoldenObjective, EqualsTheDirectComputationForAnyNumberOfStages) {
  DiskFiles files;
  for (const int stages : {1, 3, GetParam().stages}) {
    Value all = parameters();
    all.set("batch_size", static_cast<std::int64_t>(number("num_examples")));
    const auto objective = load_objective(GetParam().kind, all, stages, files);
    Chain chain(*objective);
    std::vector<double> w;
    for (Tensor& block : chain.weights) {
      for (std::int64_t i = 0; i < block.elements(); ++i) {
        w.push_back(block.data<double>()[i] =
                        0.1 * RandomStream(1, DrawKind::generated_data, 0, w.size()).normal());
      }
    }
    const Reference expected = reference(w);
    const auto value = static_cast<double>(expected.value);
    EXPECT_NEAR(chain.evaluate(1), value, 1e-13 * value);
    chain.forward(Batch(0));
    chain.backward(Batch(0));
    std::size_t at = 0;
    for (const Tensor& gradient : chain.gradients) {
      for (std::int64_t i = 0; i < gradient.elements(); ++i) {
        ASSERT_NEAR(gradient.data<double>()[i], static_cast<double>(expected.gradient[at++]),
                    1e-13 * value);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenObjective,
                         testing::Values(Golden{"quadratic", "quadratic_tiny", 4},
                                         Golden{"quadratic", "nesterov_quadratic_s16", 16},
                                         Golden{"quadratic", "quadratic_s8", 8},
                                         Golden{"logistic", "logistic_tiny", 4},
                                         Golden{"logistic", "logistic_s16", 16}),
                         [](const auto& info) { return info.param.name; });

TEST(Linear, DenseAndSparseRowsGiveTheSame) {
  MemoryFiles files = small_files();
  const auto both = [&](int stages) {
    std::vector<std::unique_ptr<Chain>> chains;
    for (const Value& data : {npy_data(), libsvm_data()}) {
      const auto objective = load_objective(
          "logistic", map_of({{"data", data}, {"l2", 0.1}, {"batch_size", 2}}), stages, files);
      chains.push_back(std::make_unique<Chain>(*objective));
      chains.back()->initialise_random(1);
    }
    return chains;
  };
  for (const int stages : {1, 2, 3}) {
    const auto chains = both(stages);
    EXPECT_DOUBLE_EQ(chains[0]->evaluate(1), chains[1]->evaluate(1));
    EXPECT_DOUBLE_EQ(chains[0]->forward(Batch(0)), chains[1]->forward(Batch(0)));
    for (const auto& chain : chains) chain->backward(Batch(0));
    for (std::size_t s = 0; s < chains[0]->gradients.size(); ++s) {
      for (std::int64_t i = 0; i < chains[0]->gradients[s].elements(); ++i) {
        EXPECT_DOUBLE_EQ(chains[0]->gradients[s].data<double>()[i],
                         chains[1]->gradients[s].data<double>()[i]);
      }
    }
  }
}

TEST(Linear, LeftOverRowsCountInTheObjectiveAndNeverTrain) {
  MemoryFiles files = small_files();
  const auto objective =
      load_objective("quadratic", map_of({{"data", npy_data()}, {"batch_size", 2}}), 1, files);
  Chain chain(*objective);
  EXPECT_EQ(chain.shape.batches, 1);
  EXPECT_DOUBLE_EQ(chain.forward(Batch(0)), 0.25);       // (1 + 0) / (2 * 2)
  EXPECT_DOUBLE_EQ(chain.evaluate(1), 2.0 / (2.0 * 3));  // (1 + 0 + 1) / (2 * 3)
}

TEST(Linear, TheBatchLossIsTheDataTermAndTheObjectiveHasTheL2Term) {
  MemoryFiles files = small_files();
  const auto objective = load_objective(
      "logistic", map_of({{"data", npy_data()}, {"l2", 0.5}, {"batch_size", 3}}), 2, files);
  Chain chain(*objective);
  chain.weights[0].data<double>()[0] = 1;
  chain.weights[1].data<double>()[0] = -2;
  EXPECT_NEAR(chain.evaluate(1) - chain.forward(Batch(0)), 0.5 / 2 * (1 + 4), 1e-14);
}

TEST(Logistic, IsExactForVeryLargeActivations) {
  MemoryFiles files;
  files.put("a.libsvm", "1 1:1\n0 1:1\n");
  const auto objective =
      load_objective("logistic", map_of({{"data", libsvm_data()}, {"batch_size", 1}}), 1, files);
  Chain chain(*objective);
  const auto at = [&](double w, std::int64_t batch) {
    chain.weights[0].data<double>()[0] = w;
    const double loss = chain.forward(Batch(batch));
    chain.backward(Batch(batch));
    return std::pair{loss, chain.gradients[0].data<double>()[0]};
  };
  EXPECT_EQ(at(800, 0), (std::pair{0.0, 0.0}));
  EXPECT_EQ(at(-800, 0), (std::pair{800.0, -1.0}));
  EXPECT_EQ(at(800, 1), (std::pair{800.0, 1.0}));
  EXPECT_EQ(at(-800, 1), (std::pair{0.0, 0.0}));
  // Small but not zero: neither log(1 + e^40) - 40 nor sigma(40) - 1 may cancel.
  for (const auto& [w, batch, sign] : {std::tuple{40.0, 0, -1.0}, {-40.0, 1, 1.0}}) {
    EXPECT_DOUBLE_EQ(at(w, batch).first, std::exp(-40.0));
    EXPECT_DOUBLE_EQ(at(w, batch).second, sign * std::exp(-40.0));
  }
}

TEST(Linear, AllocatesNothingInSteadyState) {
  MemoryFiles files = small_files();
  for (const char* kind : {"quadratic", "logistic"}) {
    for (const Value& data : {npy_data(), libsvm_data()}) {
      for (const int stages : {1, 2, 3}) {
        const auto objective =
            load_objective(kind, map_of({{"data", data}, {"batch_size", 2}}), stages, files);
        Chain chain(*objective);
        std::uint64_t weights_id = 0;
        const auto turn = [&] {
          chain.forward(Batch(0));
          chain.backward(Batch(0));
          chain.evaluate(++weights_id);
        };
        // What the first turn kept for good may have come from what it had freed before.
        turn();
        turn();
        const std::int64_t buffers = Buffer::system_allocations();
        const long heap = heap_allocations();
        ASSERT_GT(heap, 0) << "nothing is counted";
        for (int i = 0; i < 10; ++i) turn();
        EXPECT_EQ(Buffer::system_allocations(), buffers) << kind << ", " << stages << " stages";
        EXPECT_EQ(heap_allocations(), heap) << kind << ", " << stages << " stages";
      }
    }
  }
}

TEST(Linear, StagesKeepWhatTheyNeedOfTheData) {
  MemoryFiles files = small_files();
  auto objective =
      load_objective("quadratic", map_of({{"data", npy_data()}, {"batch_size", 3}}), 2, files);
  Chain chain(*objective);
  objective.reset();
  chain.weights[1].data<double>()[0] = 1;
  EXPECT_DOUBLE_EQ(chain.evaluate(1), (1.0 + 16 + 25) / 6);
}

TEST(Linear, DescribesTheBytesOfItsMessagesAndData) {
  MemoryFiles files = small_files();
  const Value batch(2);
  const auto dense =
      load_objective("logistic", map_of({{"data", npy_data()}, {"batch_size", batch}}), 2, files);
  EXPECT_EQ(dense->shape().activation_bytes, 16);
  EXPECT_EQ(dense->shape().evaluation_bytes, 24);
  EXPECT_EQ(dense->shape().data_bytes, 6 * 8 + 3 * 8);
  EXPECT_THAT(dense->shape().block_parameters, testing::ElementsAre(1, 1));
  const auto sparse = load_objective(
      "logistic", map_of({{"data", libsvm_data()}, {"l2", 1.0}, {"batch_size", batch}}), 2, files);
  EXPECT_EQ(sparse->shape().evaluation_bytes, 32);
  EXPECT_EQ(sparse->shape().data_bytes, 6 * 12 + 2 * 4 * 8 + 3 * 8);
}

TEST(Linear, RefusesBadParametersWithTheirPlace) {
  MemoryFiles files = small_files();
  EXPECT_EQ(error_of("quadratic", map_of({{"data", npy_data()}, {"batch_size", 4}}), files),
            "batch_size: 4 is above the number of examples, 3");
  EXPECT_EQ(error_of("quadratic", map_of({{"batch_size", 4}}), files),
            "give exactly one of data and generate, found neither");
  const Value generate = map_of({{"kind", "random"}, {"examples", 4}, {"parameters", 2}});
  EXPECT_EQ(
      error_of("quadratic",
               map_of({{"data", npy_data()}, {"generate", generate}, {"batch_size", 1}}), files),
      "give exactly one of data and generate, found both");
  EXPECT_THAT(error_of("quadratic", map_of({{"data", npy_data()}, {"batch_size", 0}}), files),
              HasSubstr("batch_size: must be at least 1"));
  EXPECT_THAT(error_of("logistic", map_of({{"batch_size", 1}}), files),
              HasSubstr("'data' is missing"));
  EXPECT_THAT(
      error_of("logistic", map_of({{"data", npy_data()}, {"l2", -0.1}, {"batch_size", 1}}), files),
      HasSubstr("l2: must be at least 0"));
}

TEST(Quadratic, RefusesGeneratorsThatCannotBe) {
  MemoryFiles files;
  const auto error_for = [&](Value::Map generate) {
    return error_of("quadratic",
                    map_of({{"generate", Value(std::move(generate))}, {"batch_size", 1}}), files);
  };
  EXPECT_EQ(error_for({{"kind", "conditioned"}, {"examples", 4}, {"parameters", 2}}),
            "generate: kind conditioned needs a condition_number");
  EXPECT_EQ(
      error_for({{"kind", "random"}, {"examples", 4}, {"parameters", 2}, {"condition_number", 10}}),
      "generate: condition_number is only for kind conditioned, found random");
  EXPECT_THAT(error_for({{"kind", "tridiagonal"}, {"examples", 4}, {"parameters", 5}}),
              HasSubstr("generate: tridiagonal and conditioned need at least as many examples"));
  EXPECT_THAT(error_for({{"kind", "tridiagnal"}, {"examples", 4}, {"parameters", 5}}),
              HasSubstr("did you mean 'tridiagonal'?"));
  EXPECT_EQ(
      error_for(
          {{"kind", "conditioned"}, {"examples", 4}, {"parameters", 2}, {"condition_number", 10}}),
      "no error");
}

TEST(Linear, RefusesBadDataWithItsFile) {
  MemoryFiles files = small_files();
  const auto error_for = [&](const Value& data) {
    return error_of("logistic", map_of({{"data", data}, {"batch_size", 1}}), files);
  };
  files.put("y.npy", npy_bytes("(2,)", {1, 0}));
  EXPECT_EQ(error_for(npy_data()), "y.npy: shape (2,), expected (3,): one value per row of X.npy");
  files.put("y.npy", npy_bytes("(3, 1)", {1, 0, 1}));
  EXPECT_THAT(error_for(npy_data()), HasSubstr("y.npy: shape (3, 1), expected (3,)"));
  files.put("y.npy", npy_bytes("(3,)", {1, 0, 2}));
  EXPECT_THAT(error_for(npy_data()),
              HasSubstr("y.npy: element [2]: label 2 is a third one after 0 and 1"));
  files.put("X.npy", npy_bytes("(3,)", {1, 0, 2}));
  EXPECT_EQ(error_for(npy_data()),
            "X.npy: shape (3,), expected (examples, parameters), both at least 1");
  files.put("X.npy", npy_bytes("(0, 3)", {}));
  EXPECT_THAT(error_for(npy_data()), HasSubstr("X.npy: shape (0, 3), expected"));
  files.put("a.libsvm", "1 1:1\n\n3 1:1\n");
  EXPECT_THAT(error_for(libsvm_data()), HasSubstr("a.libsvm:3: the labels found are 1 and 3"));
  files.put("a.libsvm", "1 1:1\n1 1:x\n");
  EXPECT_EQ(error_for(libsvm_data()), "a.libsvm:2: the value 'x' is not a number");
  files.put("a.libsvm", "1\n0\n");
  EXPECT_EQ(error_for(libsvm_data()),
            "a.libsvm: no line has an INDEX:VALUE, so there is nothing to learn from");
  EXPECT_EQ(error_for(map_of({{"libsvm", "no.libsvm"}})), "no.libsvm: cannot be opened: not there");
}

}  // namespace
}  // namespace pipewright
