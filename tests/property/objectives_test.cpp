// Properties of every registered objective: a new one needs an entry in problems() and nothing
// else.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "core/base/random.hpp"
#include "tests/support/chain.hpp"
#include "tests/support/memory_files.hpp"

namespace pipewright {
namespace {

/// One set of parameters with which a kind is checked.
struct Case {
  std::string name;
  Value parameters;
  double l2 = 0;  // the part of the gradient that the loss of a batch does not show: l2 w
};

struct Problems {
  std::vector<Case> cases;
  double step = 1e-5;       // of the finite differences
  double tolerance = 1e-8;  // of a directional derivative, relative to 1 + its size
};

constexpr std::int64_t examples = 11;
constexpr std::int64_t parameters = 5;  // fewer than the 7 stages below: two blocks are empty

MemoryFiles test_files() {
  std::vector<double> x;
  std::vector<double> labels;
  std::string libsvm;
  RandomStream draws(1, DrawKind::generated_data);
  for (int i = 0; i < examples; ++i) {
    labels.push_back(i % 3 == 0 ? 1 : 0);
    libsvm += i % 3 == 0 ? "+1" : "-1";
    for (int j = 0; j < parameters; ++j) {
      x.push_back(draws.normal());
      if ((i + j) % 2 == 0) libsvm += " " + std::to_string(j + 1) + ":" + std::to_string(x.back());
    }
    libsvm += "\n";
  }
  MemoryFiles files;
  files.put("X.npy", npy_bytes("(11, 5)", x));
  files.put("y.npy", npy_bytes("(11,)", labels));
  files.put("a.libsvm", libsvm);
  std::vector<double> tokens;
  for (int i = 0; i < examples * 4 + 1; ++i) tokens.push_back((i * i + i / 7) % 7);
  files.put("tokens.npy", npy_bytes("(45,)", tokens));
  return files;
}

Value map_of(Value::Map entries) {
  return Value(std::move(entries));
}

/// Of every kind that is registered.
std::map<std::string, Problems> problems() {
  const Value npy = map_of({{"npy", map_of({{"x", "X.npy"}, {"y", "y.npy"}})}});
  const Value libsvm = map_of({{"libsvm", "a.libsvm"}});
  const Value generate = map_of({{"kind", "tridiagonal"}, {"examples", 11}, {"parameters", 5}});
  std::map<std::string, Problems> all;
  for (const int batch_size : {1, 3, 11}) {
    const std::string b = ", batch size " + std::to_string(batch_size);
    all["quadratic"].cases.push_back(
        {"dense" + b, map_of({{"data", npy}, {"batch_size", batch_size}})});
    all["quadratic"].cases.push_back(
        {"sparse" + b, map_of({{"data", libsvm}, {"batch_size", batch_size}})});
    all["quadratic"].cases.push_back(
        {"generated" + b, map_of({{"generate", generate}, {"batch_size", batch_size}})});
    all["logistic"].cases.push_back(
        {"dense" + b, map_of({{"data", npy}, {"batch_size", batch_size}})});
    all["logistic"].cases.push_back(
        {"sparse with l2" + b, map_of({{"data", libsvm}, {"l2", 0.3}, {"batch_size", batch_size}}),
         0.3});
    const Value tokens = map_of({{"tokens_npy", "tokens.npy"}});
    for (const bool recompute : {false, true}) {
      all["transformer"].cases.push_back(
          {(recompute ? "recomputed" : "kept") + b, map_of({{"data", tokens},
                                                            {"batch_size", batch_size},
                                                            {"sequence_length", 4},
                                                            {"embedding", 6},
                                                            {"heads", 3},
                                                            {"recompute", recompute}})});
    }
  }
  // float32: the differences of two losses have few digits left.
  all["transformer"].step = 1e-3;
  all["transformer"].tolerance = 2e-3;
  return all;
}

/// Calls check(problems, case, chain) for every kind, case and number of stages, at random weights.
template <class Check>
void for_every_objective(Check check) {
  const auto all = problems();
  MemoryFiles files = test_files();
  for (const ObjectiveKind& kind : ObjectiveRegistry::instance().all()) {
    const auto found = all.find(kind.kind);
    if (found == all.end()) {
      ADD_FAILURE() << "objective '" << kind.kind
                    << "' has no entry in problems() of tests/property/objectives_test.cpp: add "
                       "parameters with which its gradients can be checked";
      continue;
    }
    for (const Case& c : found->second.cases) {
      for (const int stages : {1, 2, 3, 7}) {
        SCOPED_TRACE(kind.kind + ", " + c.name + ", " + std::to_string(stages) + " stages");
        const auto objective = load_objective(kind.kind, c.parameters, stages, files);
        Chain chain(*objective);
        chain.initialise_random(3);
        check(found->second, c, chain);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

/// Weights as doubles, whatever the dtype.
double get(const Tensor& tensor, std::int64_t i) {
  return tensor.dtype() == DType::float64 ? tensor.data<double>()[i]
                                          : static_cast<double>(tensor.data<float>()[i]);
}
void put(Tensor& tensor, std::int64_t i, double value) {
  if (tensor.dtype() == DType::float64) {
    tensor.data<double>()[i] = value;
  } else {
    tensor.data<float>()[i] = static_cast<float>(value);
  }
}

/// (f(w + step v) - f(w - step v)) / (2 step) for a direction v in one block.
template <class Function>
double central_difference(Tensor& block, const std::vector<double>& v, double step, Function f) {
  const Tensor start = block.clone();
  const auto at = [&](double signed_step) {
    for (std::size_t i = 0; i < v.size(); ++i) {
      const auto k = static_cast<std::int64_t>(i);
      put(block, k, get(start, k) + signed_step * v[i]);
    }
    return f();
  };
  const double difference = (at(step) - at(-step)) / (2 * step);
  block = start.clone();
  return difference;
}

/// A few random directions, and the first axes.
std::vector<std::vector<double>> directions(std::size_t size) {
  std::vector<std::vector<double>> all;
  for (std::size_t axis = 0; axis < std::min<std::size_t>(size, 8); ++axis) {
    all.emplace_back(size, 0.0)[axis] = 1;
  }
  for (std::uint32_t k = 0; k < 3 && size > 0; ++k) {
    RandomStream draws(5, DrawKind::generated_data, k);
    double squares = 0;
    auto& v = all.emplace_back(size);
    for (double& entry : v) squares += std::pow(entry = draws.normal(), 2);
    for (double& entry : v) entry /= std::sqrt(squares);
  }
  return all;
}

/// Compares all gradients of the chain with central differences of f; `l2` as in Case.
template <class Function>
void expect_gradients_of(const Problems& problems, Chain& chain, double l2, Function f) {
  for (std::size_t s = 0; s < chain.models.size(); ++s) {
    SCOPED_TRACE("stage " + std::to_string(s));
    for (const auto& v : directions(static_cast<std::size_t>(chain.weights[s].elements()))) {
      double expected = 0;
      for (std::size_t i = 0; i < v.size(); ++i) {
        const auto k = static_cast<std::int64_t>(i);
        expected += v[i] * (get(chain.gradients[s], k) - l2 * get(chain.weights[s], k));
      }
      const double found = central_difference(chain.weights[s], v, problems.step, f);
      ASSERT_NEAR(found, expected, problems.tolerance * (1 + std::abs(expected)));
    }
  }
}

TEST(EveryObjective, HasTheGradientOfItsBatchLoss) {
  for_every_objective([](const Problems& problems, const Case& c, Chain& chain) {
    for (const std::int64_t b : {std::int64_t{0}, chain.shape.batches - 1}) {
      chain.forward(Batch(b));
      chain.backward(Batch(b));
      expect_gradients_of(problems, chain, c.l2, [&] { return chain.forward(Batch(b)); });
    }
  });
}

TEST(EveryObjective, HasTheGradientOfTheFullObjectiveWhenTheBatchIsAllOfTheData) {
  int checked = 0;
  for_every_objective([&](const Problems& problems, const Case&, Chain& chain) {
    if (chain.shape.batch_size != chain.shape.examples) return;
    ++checked;
    chain.forward(Batch(0));
    chain.backward(Batch(0));
    std::uint64_t weights_id = 0;
    expect_gradients_of(problems, chain, 0, [&] { return chain.evaluate(++weights_id); });
  });
  EXPECT_GT(checked, 0);
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.bytes() == b.bytes() &&
         (a.bytes() == 0 || std::memcmp(a.buffer().data(), b.buffer().data(), a.bytes()) == 0);
}

TEST(EveryObjective, GivesTheSameBytesOnEveryCall) {
  for_every_objective([](const Problems&, const Case&, Chain& chain) {
    const double loss = chain.forward(Batch(0));
    chain.backward(Batch(0));
    std::vector<Tensor> gradients;
    for (Tensor& gradient : chain.gradients)
      gradients.push_back(std::exchange(gradient, gradient.clone()));
    const double value = chain.evaluate(1);
    const Tensor elsewhere(DType::float64, {100});  // so that the free list is in another state
    EXPECT_EQ(chain.forward(Batch(0)), loss);
    chain.backward(Batch(0));
    for (std::size_t s = 0; s < gradients.size(); ++s) {
      EXPECT_TRUE(same_bytes(chain.gradients[s], gradients[s])) << "stage " << s;
    }
    EXPECT_EQ(chain.evaluate(1), value) << "from what was kept";
    EXPECT_EQ(chain.evaluate(2), value) << "computed again";
  });
}

TEST(EveryObjective, SeesNewWeightsInTheFullObjective) {
  for_every_objective([](const Problems&, const Case&, Chain& chain) {
    const double before = chain.evaluate(1);
    std::vector<Tensor> start;
    for (Tensor& weights : chain.weights) start.push_back(weights.clone());
    chain.initialise_random(4);
    EXPECT_NE(chain.evaluate(2), before);
    chain.weights = std::move(start);
    EXPECT_EQ(chain.evaluate(3), before);
  });
}

TEST(EveryObjective, LeavesTheGradientAloneWhenItIsNotWanted) {
  for_every_objective([](const Problems&, const Case&, Chain& chain) {
    for (Tensor& gradient : chain.gradients) {
      for (std::int64_t i = 0; i < gradient.elements(); ++i) put(gradient, i, 77);
    }
    chain.forward(Batch(0));
    chain.backward(Batch(0), false);
    for (const Tensor& gradient : chain.gradients) {
      for (std::int64_t i = 0; i < gradient.elements(); ++i) ASSERT_EQ(get(gradient, i), 77);
    }
  });
}

TEST(EveryObjective, DescribesItsShapes) {
  for_every_objective([](const Problems&, const Case&, Chain& chain) {
    const ObjectiveShape& shape = chain.shape;
    EXPECT_EQ(shape.batches, shape.examples / shape.batch_size);
    ASSERT_EQ(shape.block_parameters.size(), chain.models.size());
    for (std::size_t s = 0; s < chain.models.size(); ++s) {
      StageModel& model = *chain.models[s];
      EXPECT_EQ(model.parameter_count(), shape.block_parameters[s]);
      EXPECT_EQ(model.dtype(), shape.dtype);
      EXPECT_EQ(model.evaluation_bytes(), shape.evaluation_bytes);
    }
    Tensor x;
    double loss = 0;
    for (std::size_t s = 0; s + 1 < chain.models.size(); ++s) {
      x = chain.models[s]->forward(Batch(0), chain.weights[s], std::move(x), chain.saved[s], loss);
      EXPECT_EQ(x.shape(), chain.models[s]->activation_shape());
      EXPECT_EQ(static_cast<std::int64_t>(x.bytes()), shape.activation_bytes);
    }
    Tensor partial;
    Evaluation value;
    for (std::size_t s = 0; s + 1 < chain.models.size(); ++s) {
      partial = chain.models[s]->evaluate(0, chain.weights[s], 1, std::move(partial), value);
      EXPECT_EQ(static_cast<std::int64_t>(partial.bytes()), shape.evaluation_bytes);
    }
  });
}

TEST(EveryObjective, StartsRandomlyByTheSeedAlone) {
  for_every_objective([](const Problems&, const Case&, Chain& chain) {
    std::vector<Tensor> first;
    for (Tensor& weights : chain.weights) first.push_back(weights.clone());
    chain.initialise_random(3);
    for (std::size_t s = 0; s < first.size(); ++s)
      EXPECT_TRUE(same_bytes(first[s], chain.weights[s]));
    chain.initialise_random(4);
    for (std::size_t s = 0; s < first.size(); ++s) {
      if (first[s].elements() > 0) {
        EXPECT_FALSE(same_bytes(first[s], chain.weights[s])) << "stage " << s;
      }
    }
  });
}

}  // namespace
}  // namespace pipewright
