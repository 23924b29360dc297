// Every layer of the language model against central differences, in double.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/random.hpp"
#include "core/objectives/transformer/attention.hpp"
#include "core/objectives/transformer/cross_entropy.hpp"
#include "core/objectives/transformer/embedding.hpp"
#include "core/objectives/transformer/gelu.hpp"
#include "core/objectives/transformer/layer_norm.hpp"
#include "core/objectives/transformer/linear.hpp"

namespace pipewright::transformer {
namespace {

using Numbers = std::vector<double>;

Numbers random_numbers(Index size, std::uint32_t key) {
  RandomStream draws(1, DrawKind::generated_data, key);
  Numbers numbers(static_cast<std::size_t>(size));
  for (double& number : numbers) number = draws.normal();
  return numbers;
}

double dot(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// `gradient` is that of f() with respect to every one of `numbers`, which f reads.
template <class Function>
void expect_gradient(const char* name, Numbers& numbers, const Numbers& gradient, Function f) {
  static constexpr double step = 1e-5;
  ASSERT_EQ(numbers.size(), gradient.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double start = numbers[i];
    numbers[i] = start + step;
    const double above = f();
    numbers[i] = start - step;
    const double below = f();
    numbers[i] = start;
    ASSERT_NEAR((above - below) / (2 * step), gradient[i], 1e-8 * (1 + std::abs(gradient[i])))
        << name << "[" << i << "]";
  }
}

Numbers like(const Numbers& numbers) {
  return Numbers(numbers.size(), 77.0);  // what a backward must overwrite
}

TEST(Linear, HasTheGradientsOfItsForward) {
  for (const auto& [n, in, out] :
       {std::tuple<Index, Index, Index>{1, 1, 1}, {5, 6, 7}, {3, 17, 2}, {9, 33, 20}}) {
    for (const bool has_bias : {true, false}) {
      Numbers x = random_numbers(n * in, 1), w = random_numbers(out * in, 2);
      Numbers b = random_numbers(out, 3), y(static_cast<std::size_t>(n * out));
      const Numbers dy = random_numbers(n * out, 4);
      const auto f = [&, n = n, in = in, out = out] {
        linear_forward(x.data(), w.data(), has_bias ? b.data() : nullptr, y.data(), n, in, out);
        return dot(y, dy);
      };
      Numbers dx = like(x), dw = like(w), db = like(b);
      linear_backward_input(w.data(), dy.data(), dx.data(), n, in, out);
      linear_backward_weights(x.data(), dy.data(), dw.data(), has_bias ? db.data() : nullptr, n, in,
                              out);
      expect_gradient("x", x, dx, f);
      expect_gradient("w", w, dw, f);
      if (has_bias) expect_gradient("b", b, db, f);
    }
  }
}

TEST(Linear, AddsToAResidual) {
  for (const Index n : {1, 5}) {
    const Numbers x = random_numbers(n * 6, 1), w = random_numbers(7 * 6, 2);
    const Numbers b = random_numbers(7, 3), residual = random_numbers(n * 7, 4);
    Numbers y(residual.size()), sum = residual;
    linear_forward(x.data(), w.data(), b.data(), y.data(), n, 6, 7);
    linear_forward(x.data(), w.data(), b.data(), sum.data(), n, 6, 7, true);
    for (std::size_t i = 0; i < sum.size(); ++i) EXPECT_NEAR(sum[i], residual[i] + y[i], 1e-14);
  }
}

TEST(LayerNorm, HasTheGradientsOfItsForward) {
  for (const auto& [n, d] : {std::pair<Index, Index>{1, 1}, {5, 6}, {3, 17}, {2, 32}}) {
    Numbers x = random_numbers(n * d, 1), w = random_numbers(d, 2), b = random_numbers(d, 3);
    Numbers y(x.size()), stats(static_cast<std::size_t>(2 * n));
    const Numbers dy = random_numbers(n * d, 4), residual = random_numbers(n * d, 5);
    const auto f = [&, n = n, d = d] {
      layer_norm_forward(x.data(), w.data(), b.data(), y.data(), stats.data(), n, d);
      return dot(y, dy) + dot(x, residual);
    };
    f();
    Numbers dx = residual, dw = like(w), db = like(b);
    layer_norm_backward(x.data(), w.data(), stats.data(), dy.data(), dx.data(), dw.data(),
                        db.data(), n, d);
    expect_gradient("x", x, dx, f);
    expect_gradient("w", w, dw, f);
    expect_gradient("b", b, db, f);
    Numbers dx_alone = residual;
    layer_norm_backward<double>(x.data(), w.data(), stats.data(), dy.data(), dx_alone.data(),
                                nullptr, nullptr, n, d);
    EXPECT_EQ(dx_alone, dx);
  }
}

TEST(Gelu, HasTheGradientOfItsForward) {
  for (const Index n : {1, 7, 2500}) {
    Numbers x = random_numbers(n, 1), y(x.size());
    Numbers dx = random_numbers(n, 2);
    const Numbers dy = dx;
    Numbers in = x;
    gelu_backward(in.data(), dx.data(), n);
    gelu_forward(x.data(), y.data(), n);
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(in[i], y[i], 1e-15);
    // Entry by entry, for n^2 evaluations of it all would be many.
    for (std::size_t i = 0; i < y.size(); ++i) {
      Numbers one{x[i]};
      expect_gradient("x", one, {dx[i]}, [&] {
        double value = 0;
        gelu_forward(one.data(), &value, 1);
        return value * dy[i];
      });
    }
  }
}

TEST(Gelu, InSinglePrecisionIsThatOfTheErrorFunction) {
  std::vector<float> x;
  for (int i = -12000; i <= 12000; ++i) x.push_back(static_cast<float>(i) / 1000);
  const auto n = static_cast<Index>(x.size());
  std::vector<float> y(x.size()), in = x, dx(x.size(), 1.0F);
  gelu_forward(x.data(), y.data(), n);
  gelu_backward(in.data(), dx.data(), n);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double at = x[i];
    const double phi = std::erfc(-at / std::numbers::sqrt2) / 2;
    const double density = std::exp(-at * at / 2) / std::sqrt(2 * std::numbers::pi);
    ASSERT_NEAR(y[i], at * phi, 2e-7 * (1 + std::abs(at))) << at;
    ASSERT_NEAR(dx[i], phi + at * density, 5e-7) << at;
  }
}

TEST(Attention, HasTheGradientOfItsForward) {
  for (const AttentionShape shape : {AttentionShape{1, 1, 1, 1}, AttentionShape{2, 5, 6, 3},
                                     AttentionShape{1, 17, 8, 2}, AttentionShape{3, 1, 6, 3}}) {
    const Index tokens = shape.n * shape.t;
    Numbers qkv = random_numbers(tokens * 3 * shape.d, 1);
    Numbers p(static_cast<std::size_t>(shape.probabilities()));
    Numbers y(static_cast<std::size_t>(tokens * shape.d));
    const Numbers dy = random_numbers(tokens * shape.d, 2);
    const auto f = [&] {
      attention_forward(qkv.data(), p.data(), y.data(), shape);
      return dot(y, dy);
    };
    f();
    Numbers dqkv = like(qkv), room(static_cast<std::size_t>(shape.t * shape.t));
    attention_backward(qkv.data(), p.data(), dy.data(), dqkv.data(), room.data(), shape);
    expect_gradient("qkv", qkv, dqkv, f);
  }
}

TEST(Attention, LooksAtNothingThatComesLater) {
  const AttentionShape shape{1, 6, 4, 2};
  Numbers qkv = random_numbers(6 * 12, 1), p(2 * 36), before(24), after(24);
  attention_forward(qkv.data(), p.data(), before.data(), shape);
  for (std::size_t i = 4 * 12; i < 5 * 12; ++i) qkv[i] += 1;  // all of token 4
  attention_forward(qkv.data(), p.data(), after.data(), shape);
  for (std::size_t i = 0; i < 24; ++i) {
    EXPECT_EQ(before[i] == after[i], i < 4 * 4) << "token " << i / 4;
  }
}

TEST(Attention, IsExactForVeryLargeProducts) {
  // Every q and k is 1e3: a token looks at all that it may alike, with no overflow.
  for (const Index t : {1, 2, 21}) {
    Numbers qkv, p(static_cast<std::size_t>(t * t)), y(static_cast<std::size_t>(t));
    for (Index i = 0; i < t; ++i) {
      for (const double number : {1e3, 1e3, static_cast<double>(i)}) qkv.push_back(number);
    }
    attention_forward(qkv.data(), p.data(), y.data(), {1, t, 1, 1});
    for (Index i = 0; i < t; ++i) {
      EXPECT_DOUBLE_EQ(y[static_cast<std::size_t>(i)], static_cast<double>(i) / 2);
    }
  }
}

TEST(Embedding, HasTheGradientsOfItsForward) {
  const Index n = 3, t = 5, d = 6, vocabulary = 7;
  const std::vector<std::int32_t> tokens{0, 1, 1, 6, 2, 3, 3, 3, 0, 6, 5, 1, 2, 0, 0};
  Numbers token = random_numbers(vocabulary * d, 1), position = random_numbers(t * d, 2);
  Numbers y(static_cast<std::size_t>(n * t * d));
  const Numbers dy = random_numbers(n * t * d, 3);
  const auto f = [&] {
    embedding_forward(tokens.data(), token.data(), position.data(), y.data(), n, t, d);
    return dot(y, dy);
  };
  Numbers dtoken = like(token), dposition = like(position);
  embedding_backward(tokens.data(), dy.data(), dtoken.data(), dposition.data(), n, t, d,
                     vocabulary);
  expect_gradient("token", token, dtoken, f);
  expect_gradient("position", position, dposition, f);
  for (Index j = 0; j < d; ++j) EXPECT_EQ(dtoken[static_cast<std::size_t>(4 * d + j)], 0);
}

TEST(CrossEntropy, HasTheGradientOfItsForward) {
  for (const auto& [n, v] : {std::pair<Index, Index>{1, 1}, {4, 7}, {3, 65}}) {
    Numbers z = random_numbers(n * v, 1);
    std::vector<std::int32_t> targets;
    for (Index i = 0; i < n; ++i) targets.push_back(static_cast<std::int32_t>((3 * i + 2) % v));
    Numbers p;
    const auto f = [&, n = n, v = v] {
      p = z;
      return cross_entropy_forward(p.data(), targets.data(), n, v) / static_cast<double>(n);
    };
    f();
    Numbers dz = p;
    cross_entropy_backward(dz.data(), targets.data(), n, v);
    expect_gradient("z", z, dz, f);
  }
}

TEST(CrossEntropy, IsExactForVeryLargeLogits) {
  for (const Index v : {2, 7, 33}) {
    Numbers z(static_cast<std::size_t>(2 * v));
    z[0] = z[static_cast<std::size_t>(v) + 1] = 1000;
    const std::vector<std::int32_t> targets{0, 0};
    EXPECT_EQ(cross_entropy_forward(z.data(), targets.data(), 2, v), 1000) << v;
  }
}

}  // namespace
}  // namespace pipewright::transformer
