#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/base/error.hpp"
#include "core/base/params.hpp"
#include "core/base/random.hpp"
#include "core/base/tensor.hpp"
#include "core/base/text.hpp"
#include "core/base/value.hpp"

namespace pipewright {
namespace {

TEST(Text, NumbersAreTheShortestThatReadBack) {
  EXPECT_EQ(format_number(0.1), "0.1");
  EXPECT_EQ(format_number(471.16224860237668), "471.1622486023767");
  EXPECT_EQ(format_number(1e-28), "1e-28");
  EXPECT_EQ(format_number(-std::nan("")), "nan");
  EXPECT_EQ(parse_real(format_number(1.0 / 3)), 1.0 / 3);
}

TEST(Text, NumbersWithTrailingTextAreNotNumbers) {
  EXPECT_FALSE(parse_integer("12x"));
  EXPECT_FALSE(parse_integer(""));
  EXPECT_FALSE(parse_real("1.5.2"));
  EXPECT_FALSE(parse_integer("+-7"));
  EXPECT_FALSE(parse_real("nan"));
  EXPECT_FALSE(parse_real("inf"));
  EXPECT_EQ(parse_integer("+7"), 7);
}

TEST(Text, DurationsNeedAUnitAndRoundUp) {
  EXPECT_EQ(parse_duration_ns("250us"), 250'000);
  EXPECT_EQ(parse_duration_ns("2.3us"), 2300);
  EXPECT_EQ(parse_duration_ns("0.5ns"), 1);
  EXPECT_EQ(parse_duration_ns("1.5s"), 1'500'000'000);
  EXPECT_FALSE(parse_duration_ns("250"));
  EXPECT_FALSE(parse_duration_ns("-1ms"));
  EXPECT_FALSE(parse_duration_ns("5 hours"));
  EXPECT_EQ(format_duration_ns(250'000), "250us");
  EXPECT_EQ(format_duration_ns(0), "0ns");
}

TEST(Text, BandwidthsAreBytesPerSecond) {
  EXPECT_EQ(parse_bandwidth("10Gbit/s"), 1.25e9);
  EXPECT_EQ(parse_bandwidth("125 MB/s"), 1.25e8);
  EXPECT_FALSE(parse_bandwidth("10Gbit"));
  EXPECT_FALSE(parse_bandwidth("0B/s"));
}

TEST(Text, SuggestsTheNearestWordOrListsAll) {
  const std::vector<std::string> words{"learning_rate", "momentum"};
  EXPECT_EQ(suggest("learnig_rate", words), ", did you mean 'learning_rate'?");
  EXPECT_EQ(suggest("zzzzz", words), "; valid: learning_rate, momentum");
}

TEST(Value, JsonKeepsOrderAndEscapes) {
  Value value = Value::map();
  value.set("b", Value(Value::List{1, 2.5, "x\"\n"}));
  value.set("a", true);
  EXPECT_EQ(to_json(value, -1), R"({"b":[1,2.5,"x\"\n"],"a":true})");
}

TEST(Value, PathsAreMadeOnTheWayAndRefusedThroughScalars) {
  Value value = Value::map();
  set_path(value, "a.b.c", 3);
  EXPECT_EQ(find_path(value, "a.b.c")->as_integer(), 3);
  EXPECT_EQ(find_path(value, "a.x"), nullptr);
  EXPECT_THROW(set_path(value, "a.b.c.d", 1), ParamError);
}

ParamSpec example_spec() {
  return ParamSpec::group_of(
      "job", "a job",
      {ParamSpec::integer_of("stages", "how many stages").at_least(1).needed(),
       ParamSpec::real_of("rate", "step").above(0).or_default(0.5),
       ParamSpec::one_of(
           "delays", "source",
           {ParamSpec::group_of("uniform", "drawn", {}), ParamSpec::path_of("file", "recorded")}),
       ParamSpec::list_of("costs", "per stage", ParamSpec::time_of("", ""))});
}

std::string fault_of(const Value& given) {
  try {
    check_params(example_spec(), given, "");
  } catch (const ParamError& error) {
    return error.what();
  }
  return "";
}

TEST(Params, FillsDefaultsAndAcceptsABareChoice) {
  Value given = Value::map();
  given.set("stages", 4);
  given.set("delays", "uniform");
  const Value checked = check_params(example_spec(), given, "");
  EXPECT_EQ(to_json(checked, -1), R"({"stages":4,"rate":0.5,"delays":{"uniform":{}}})");
}

TEST(Params, SayWhereAndWhatWouldBeRight) {
  Value given = Value::map();
  EXPECT_EQ(fault_of(given), "'stages' is missing: how many stages");
  given.set("stages", 0);
  EXPECT_EQ(fault_of(given), "stages: must be at least 1, found 0");
  given.set("stages", "four");
  EXPECT_EQ(fault_of(given), "stages: expected a whole number, found \"four\"");
  given.set("stages", 4);
  given.set("rat", 1);
  EXPECT_EQ(fault_of(given), "rat: unknown key 'rat', did you mean 'rate'?");
  given = Value(Value::Map{{"stages", 1}, {"rate", 0}});
  EXPECT_EQ(fault_of(given), "rate: must be above 0, found 0");
  given = Value(Value::Map{{"stages", 1}, {"delays", "unifrom"}});
  EXPECT_EQ(fault_of(given), "delays: 'unifrom' is not known, did you mean 'uniform'?");
  given = Value(Value::Map{{"stages", 1}, {"costs", Value(Value::List{1, "5 parsecs"})}});
  EXPECT_EQ(fault_of(given).substr(0, 9), "costs[1]:");
}

TEST(Random, DrawsDependOnTheKeyAlone) {
  RandomStream a(7, DrawKind::cost_jitter, 3, 11);
  RandomStream b(7, DrawKind::cost_jitter, 3, 11);
  RandomStream c(7, DrawKind::cost_jitter, 3, 12);
  RandomStream d(7, DrawKind::link_jitter, 3, 11);
  const auto first = a();
  EXPECT_EQ(first, b());
  EXPECT_NE(first, c());
  EXPECT_NE(first, d());
}

TEST(Random, UniformAndNormalHaveTheirMoments) {
  RandomStream stream(1, DrawKind::generated_data);
  double sum = 0, square = 0, uniform = 0;
  const int n = 100000;
  for (int i = 0; i < n; ++i) {
    const double x = stream.normal();
    sum += x;
    square += x * x;
    uniform += stream.uniform();
  }
  // Five standard errors of each.
  EXPECT_NEAR(sum / n, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(square / n, 1, 5 * std::sqrt(2.0 / n));
  EXPECT_NEAR(uniform / n, 0.5, 5 * std::sqrt(1.0 / 12 / n));
}

TEST(Random, BelowReachesEveryValueAndNoOther) {
  RandomStream stream(2, DrawKind::rpd_sampling);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(stream.below(7));
  EXPECT_EQ(seen.size(), 7u);
  EXPECT_EQ(*seen.rbegin(), 6u);
}

TEST(Tensor, StorageIsAlignedAndUsedAgain) {
  { Tensor warm(DType::float64, {100}); }
  const auto before = Buffer::system_allocations();
  for (int i = 0; i < 10; ++i) {
    Tensor tensor(DType::float64, {100});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data<double>()) % Buffer::alignment, 0u);
  }
  EXPECT_EQ(Buffer::system_allocations(), before);
}

TEST(Tensor, AMovedFromTensorIsEmpty) {
  Tensor a = Tensor::zeros(DType::float32, {2, 3});
  Tensor b = std::move(a);
  EXPECT_TRUE(a.empty());  // NOLINT: that is what is tested
  EXPECT_EQ(b.elements(), 6);
  EXPECT_EQ(b.shape().text(), "[2, 3]");
}

}  // namespace
}  // namespace pipewright
