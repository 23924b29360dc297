#include <gmock/gmock.h>

#include <cmath>

#include "core/base/error.hpp"
#include "core/train/optimizer.hpp"
#include "tests/support/heap_count.hpp"

namespace pipewright {
namespace {

using testing::HasSubstr;

const ParamSpec& schema() {
  static const ParamSpec spec = optimizers().spec("optimizer", "");
  return spec;
}

/// The parameters of `kind` as a checked job has them.
Value checked(const std::string& kind, Value::Map given) {
  const Value all = check_params(schema(), Value(Value::Map{{kind, Value(std::move(given))}}), "");
  return all.at(kind);
}

std::unique_ptr<Optimizer> make(const std::string& kind, Value::Map given) {
  return optimizers().at(kind).make(checked(kind, std::move(given)));
}

std::string fault_of(const std::string& kind, Value::Map given) {
  try {
    make(kind, std::move(given));
  } catch (const ParamError& error) {
    return error.what();
  }
  return "no error";
}

Value warm_up_cosine(int warm_up, int updates, double final) {
  return Value(Value::Map{
      {"warm_up_cosine",
       Value(Value::Map{{"warm_up", warm_up}, {"updates", updates}, {"final", final}})}});
}

Value inverse_sqrt(int warm_up) {
  return Value(Value::Map{{"inverse_sqrt", Value(Value::Map{{"warm_up", warm_up}})}});
}

template <class T>
Tensor vector_of(const std::vector<T>& values) {
  Tensor tensor(dtype_of<T>, {static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.data<T>());
  return tensor;
}

/// The problem of the numbers below: three weights, gradient c w + sin(t), six updates.
template <class T>
std::vector<T> trajectory_end(Optimizer& optimizer, bool in_place = true) {
  Tensor w = vector_of<T>({1, -2, 0.5});
  const T c[] = {0.5, 3, 10};
  for (int t = 0; t < 6; ++t) {
    Tensor g = w.clone();
    for (int i = 0; i < 3; ++i) {
      g.data<T>()[i] = c[i] * w.data<T>()[i] + static_cast<T>(std::sin(t));
    }
    Tensor other(w.dtype(), w.shape());
    optimizer.step(w, in_place ? w : other, g);
    if (!in_place) w = std::move(other);
  }
  return {w.data<T>(), w.data<T>() + 3};
}

// The expected numbers are those of PyTorch 1.13:
//   def run(make, clip=None, rate=None):
//       w = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64, requires_grad=True)
//       c = torch.tensor([0.5, 3.0, 10.0], dtype=torch.float64)
//       optimizer = make([w])
//       schedule = rate and torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
//       for t in range(6):
//           w.grad = (c * w + math.sin(t)).detach()
//           if clip: torch.nn.utils.clip_grad_norm_([w], clip)
//           optimizer.step()
//           if schedule: schedule.step()
//       print([float(x) for x in w])
//   run(lambda p: SGD(p, lr=0.05, momentum=0.9, weight_decay=0.02))
//   run(lambda p: SGD(p, lr=0.05, momentum=0.9, weight_decay=0.02, nesterov=True))
//   run(lambda p: AdamW(p, lr=0.05))
//   run(lambda p: AdamW(p, lr=0.05, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1))
//   run(lambda p: SGD(p, lr=0.05), clip=2.0)
//   run(lambda p: AdamW(p, lr=0.05, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1), clip=2.0,
//       rate=lambda t: min((t + 1) / 3, math.sqrt(3 / (t + 1))))
struct Case {
  const char* name;
  const char* kind;
  Value::Map parameters;
  std::vector<double> expected;
};

std::vector<Case> cases() {
  const Value::Map adamw{{"learning_rate", 0.05},
                         {"beta1", 0.8},
                         {"beta2", 0.95},
                         {"epsilon", 1e-3},
                         {"weight_decay", 0.1}};
  Value::Map all = adamw;
  all.emplace_back("clip_norm", 2.0);
  all.emplace_back("learning_rate_schedule", inverse_sqrt(3));
  return {
      {"momentum",
       "sgd",
       {{"learning_rate", 0.05}, {"momentum", 0.9}, {"weight_decay", 0.02}},
       {0.3759815497128603, 1.0513846423989217, 0.12612136578179553}},
      {"Nesterov",
       "sgd",
       {{"learning_rate", 0.05}, {"momentum", 0.9}, {"weight_decay", 0.02}, {"nesterov", true}},
       {0.34608669537323555, 0.8528482798663269, 0.20028902404987878}},
      {"AdamW by default",
       "adamw",
       {{"learning_rate", 0.05}},
       {0.7519854022949711, -1.695749396078154, 0.20978936098981715}},
      {"AdamW", "adamw", adamw, {0.7382174786292902, -1.6460538481385836, 0.20465478744261495}},
      {"clipped",
       "sgd",
       {{"learning_rate", 0.05}, {"clip_norm", 2.0}},
       {0.9570091690062333, -1.5068895461944694, 0.1971021712525903}},
      {"AdamW, clipped, with a schedule",
       "adamw",
       all,
       {0.810170729720686, -1.7409755119078525, 0.2800710123036348}},
  };
}

TEST(Optimizer, TrajectoriesAreThoseOfPyTorch) {
  for (const Case& one : cases()) {
    for (const bool in_place : {true, false}) {
      const auto end = trajectory_end<double>(*make(one.kind, one.parameters), in_place);
      for (int i = 0; i < 3; ++i) {
        EXPECT_NEAR(end[i], one.expected[i], 1e-14) << one.name << ", weight " << i;
      }
    }
  }
}

TEST(Optimizer, SinglePrecisionFollowsTheSameTrajectories) {
  for (const Case& one : cases()) {
    const auto end = trajectory_end<float>(*make(one.kind, one.parameters));
    for (int i = 0; i < 3; ++i) EXPECT_NEAR(end[i], one.expected[i], 3e-6) << one.name;
  }
}

/// Weights of `size` elements after five updates with gradients that depend on the place.
template <class T>
Tensor after_five_updates(Optimizer& optimizer, Index size) {
  Tensor w = Tensor::zeros(dtype_of<T>, {size});
  for (int t = 0; t < 5; ++t) {
    Tensor g(dtype_of<T>, {size});
    for (Index i = 0; i < size; ++i) {
      g.data<T>()[i] = static_cast<T>(std::sin(static_cast<double>(i % 7) + t));
    }
    optimizer.step(w, w, g);
  }
  return w;
}

template <class T>
void expect_elementwise(const Case& one) {
  Value::Map parameters = one.parameters;
  std::erase_if(parameters, [](const auto& entry) { return entry.first == "clip_norm"; });
  // 7 and 64 bytes of vectors share no factor: every place of a vector, and the rest, is seen.
  const Tensor w = after_five_updates<T>(*make(one.kind, parameters), 1003);
  for (Index i = 7; i < 1003; ++i) {
    ASSERT_NEAR(w.data<T>()[i], w.data<T>()[i % 7], sizeof(T) == 4 ? 1e-6 : 1e-15)
        << one.name << ", element " << i;
  }
  const Tensor again = after_five_updates<T>(*make(one.kind, parameters), 1003);
  EXPECT_EQ(std::memcmp(w.data<T>(), again.data<T>(), w.bytes()), 0) << one.name;
}

TEST(Optimizer, EveryElementIsUpdatedByTheSameRuleAndTwiceGivesTheSameBytes) {
  for (const Case& one : cases()) {
    expect_elementwise<float>(one);
    expect_elementwise<double>(one);
  }
}

TEST(Optimizer, OnlyTheFirstStepAllocates) {
  for (const Case& one : cases()) {
    const auto optimizer = make(one.kind, one.parameters);
    Tensor w = Tensor::zeros(DType::float32, {500});
    Tensor g = Tensor::zeros(DType::float32, {500});
    optimizer->step(w, w, g);
    const long heap = heap_allocations();
    ASSERT_GT(heap, 0) << "nothing is counted";
    const std::int64_t system = Buffer::system_allocations();
    for (int i = 0; i < 10; ++i) optimizer->step(w, w, g);
    EXPECT_EQ(heap_allocations(), heap) << one.name;
    EXPECT_EQ(Buffer::system_allocations(), system) << one.name;
  }
}

TEST(ClipNorm, AShorterGradientStaysAsItIs) {
  Tensor w = Tensor::zeros(DType::float64, {2});
  Tensor g = vector_of<double>({3, 4});
  make("sgd", {{"learning_rate", 1.0}, {"clip_norm", 5.5}})->step(w, w, g);
  EXPECT_EQ(w.data<double>()[0], -3);
  EXPECT_EQ(w.data<double>()[1], -4);
}

TEST(ClipNorm, ALongerOneIsScaledToIt) {
  Tensor w = Tensor::zeros(DType::float64, {2});
  Tensor g = vector_of<double>({30, 40});
  make("sgd", {{"learning_rate", 1.0}, {"clip_norm", 5.0}})->step(w, w, g);
  EXPECT_NEAR(w.data<double>()[0], -3, 1e-6);
  EXPECT_NEAR(w.data<double>()[1], -4, 1e-6);
}

TEST(ClipNorm, ANormIsTakenInDoubleOfAnyLength) {
  for (const Index size : {1, 15, 16, 17, 1000}) {
    Tensor g(DType::float32, {size});
    std::fill_n(g.data<float>(), size, 1e30f);  // its square is infinite in single precision
    EXPECT_NEAR(norm_of(g) / (std::sqrt(static_cast<double>(size)) * 1e30f), 1, 1e-12) << size;
  }
}

TEST(ClipNorm, AGradientThatIsNoNumberIsNotHidden) {
  for (const double bad : {std::nan(""), HUGE_VAL}) {
    Tensor w = Tensor::zeros(DType::float64, {2});
    Tensor g = vector_of<double>({bad, 1});
    make("sgd", {{"learning_rate", 1.0}, {"clip_norm", 5.0}})->step(w, w, g);
    EXPECT_FALSE(std::isfinite(w.data<double>()[0]));
  }
}

LearningRate rate(Value schedule, double learning_rate = 0.5) {
  return LearningRate(checked(
      "sgd", {{"learning_rate", learning_rate}, {"learning_rate_schedule", std::move(schedule)}}));
}

TEST(LearningRateSchedule, IsConstantUnlessGiven) {
  const LearningRate constant(checked("sgd", {{"learning_rate", 0.3}}));
  EXPECT_EQ(constant.at(0), 0.3);
  EXPECT_EQ(constant.at(1'000'000'000), 0.3);
  EXPECT_EQ(rate("constant").at(7), 0.5);
}

TEST(LearningRateSchedule, TheCosineBeginsAboveZeroPeaksAfterTheWarmUpAndEndsAtItsShare) {
  const LearningRate cosine = rate(warm_up_cosine(4, 12, 0.1));
  EXPECT_DOUBLE_EQ(cosine.at(0), 0.5 * 0.25);
  EXPECT_DOUBLE_EQ(cosine.at(1), 0.5 * 0.5);
  EXPECT_DOUBLE_EQ(cosine.at(3), 0.5);
  EXPECT_DOUBLE_EQ(cosine.at(4), 0.5);
  EXPECT_NEAR(cosine.at(6), 0.5 * (0.1 + 0.9 * (1 + std::sqrt(0.5)) / 2), 1e-15);
  EXPECT_NEAR(cosine.at(8), 0.5 * 0.55, 1e-15);
  EXPECT_GT(cosine.at(11), 0.05);
  EXPECT_DOUBLE_EQ(cosine.at(12), 0.05);
  EXPECT_DOUBLE_EQ(cosine.at(1000), 0.05);
}

TEST(LearningRateSchedule, TheCosineWithoutWarmUpBeginsAtItsPeak) {
  const LearningRate cosine = rate(warm_up_cosine(0, 10, 0));
  EXPECT_DOUBLE_EQ(cosine.at(0), 0.5);
  EXPECT_NEAR(cosine.at(5), 0.25, 1e-15);
  EXPECT_EQ(cosine.at(10), 0);
}

TEST(LearningRateSchedule, TheInverseRootRisesToItsPeakAndFalls) {
  const LearningRate root = rate(inverse_sqrt(4));
  EXPECT_DOUBLE_EQ(root.at(0), 0.5 / 4);
  EXPECT_DOUBLE_EQ(root.at(3), 0.5);
  EXPECT_DOUBLE_EQ(root.at(15), 0.25);
  EXPECT_DOUBLE_EQ(rate("inverse_sqrt").at(0), 0.5);
  EXPECT_DOUBLE_EQ(rate("inverse_sqrt").at(99), 0.05);
}

TEST(LearningRateSchedule, AnOptimizerTakesItsOwnUpdatesForTime) {
  const auto optimizer =
      make("sgd", {{"learning_rate", 1.0}, {"learning_rate_schedule", warm_up_cosine(2, 4, 0)}});
  Tensor w = Tensor::zeros(DType::float64, {1});
  std::vector<double> steps;
  for (int t = 0; t < 5; ++t) {
    const double before = w.data<double>()[0];
    Tensor g = vector_of<double>({-1});
    optimizer->step(w, w, g);
    steps.push_back(w.data<double>()[0] - before);
  }
  EXPECT_THAT(steps, testing::Pointwise(testing::DoubleNear(1e-15), {0.5, 1.0, 1.0, 0.5, 0.0}));
}

TEST(Optimizer, APlainStepHasNoMomentumDecayClippingOrSchedule) {
  const auto plain = [](const std::string& kind, Value::Map given) {
    return plain_step(optimizers().at(kind), checked(kind, std::move(given)));
  };
  EXPECT_EQ(plain("sgd", {{"learning_rate", 0.5}}), 0.5);
  EXPECT_EQ(plain("sgd", {{"learning_rate", 0}}), std::nullopt);
  EXPECT_EQ(plain("sgd", {{"learning_rate", 0.5}, {"momentum", 0.1}}), std::nullopt);
  EXPECT_EQ(plain("sgd", {{"learning_rate", 0.5}, {"weight_decay", 0.1}}), std::nullopt);
  EXPECT_EQ(plain("sgd", {{"learning_rate", 0.5}, {"clip_norm", 10}}), std::nullopt);
  EXPECT_EQ(plain("sgd", {{"learning_rate", 0.5}, {"learning_rate_schedule", inverse_sqrt(1)}}),
            std::nullopt);
  EXPECT_EQ(plain("adamw", {{"learning_rate", 0.5}}), std::nullopt);
}

TEST(Optimizer, RefusesParametersThatAreImpossible) {
  const auto with = [](const char* key, Value value) {
    return Value::Map{{"learning_rate", 0.1}, {key, std::move(value)}};
  };
  EXPECT_THAT(fault_of("sgd", with("nesterov", true)), HasSubstr("needs a momentum above 0"));
  EXPECT_THAT(fault_of("adamw", with("beta1", 1)), HasSubstr("beta1: must be below 1, found 1"));
  EXPECT_THAT(fault_of("adamw", with("beta2", 1.5)), HasSubstr("must be below 1, found 1.5"));
  EXPECT_THAT(fault_of("adamw", with("beta2", -0.5)), HasSubstr("must be at least 0"));
  EXPECT_THAT(fault_of("adamw", with("epsilon", 0)), HasSubstr("epsilon: must be above 0"));
  EXPECT_THAT(fault_of("adamw", with("clip_norm", 0)), HasSubstr("clip_norm: must be above 0"));
  EXPECT_THAT(fault_of("adamw", with("momentum", 0.9)), HasSubstr("unknown key 'momentum'"));
  EXPECT_THAT(fault_of("sgd", with("learning_rate_schedule", warm_up_cosine(10, 10, 0))),
              HasSubstr("warm_up_cosine.warm_up: must be below 'updates', which is 10, found 10"));
  EXPECT_THAT(fault_of("sgd", with("learning_rate_schedule", warm_up_cosine(0, 10, 1.5))),
              HasSubstr("final: must be at least 0 and at most 1"));
  EXPECT_THAT(fault_of("sgd", with("learning_rate_schedule", inverse_sqrt(0))),
              HasSubstr("warm_up: must be at least 1"));
  EXPECT_THAT(fault_of("sgd", with("learning_rate_schedule", "warm_up_cosine")),
              HasSubstr("'updates' is missing"));
  EXPECT_THAT(fault_of("sgd", with("learning_rate_schedule", "cosine")), HasSubstr("not known"));
  EXPECT_THAT(fault_of("adamw", {}), HasSubstr("'learning_rate' is missing"));
}

}  // namespace
}  // namespace pipewright
