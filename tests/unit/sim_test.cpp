// Cost and link models, and what they do to timelines.
#include <gmock/gmock.h>

#include <cmath>

#include "core/base/error.hpp"
#include "core/sim/metrics.hpp"
#include "tests/support/runs.hpp"
#include "tests/support/schedule_cases.hpp"
#include "tests/support/schedules.hpp"

namespace pipewright {
namespace {

using testing::HasSubstr;

CostModel cost_of(const std::string& text, int stages, std::uint64_t seed = 0) {
  return CostModel::from(check_params(CostModel::spec(), parameters_from(text), "cost"), stages,
                         seed);
}

LinkModel link_of(const std::string& text, int stages, std::uint64_t seed = 0) {
  return LinkModel::from(check_params(LinkModel::spec(), parameters_from(text), "link"), stages,
                         seed);
}

TEST(CostModel, TimesArePerStageAndStragglersRoundUp) {
  const CostModel cost =
      cost_of("{forward: [1, 2, 3], backward: 4, stragglers: [{stage: 1, factor: 1.3}]}", 3);
  using enum ActionKind;
  EXPECT_EQ(cost.of(forward, Stage(0), Microbatch(0)), Tick(1));
  EXPECT_EQ(cost.of(forward, Stage(1), Microbatch(0)), Tick(3));
  EXPECT_EQ(cost.of(forward, Stage(2), Microbatch(0)), Tick(3));
  EXPECT_EQ(cost.of(backward, Stage(1), Microbatch(0)), Tick(6));
  EXPECT_EQ(cost.of(update, Stage(1), Microbatch(0)), Tick(0));
}

TEST(CostModel, JitterDependsOnSeedKindStageAndMicrobatchAlone) {
  const CostModel cost =
      cost_of("{forward: 1ms, backward: 1ms, jitter: {exponential: {mean: 1ms}}}", 2);
  const CostModel other =
      cost_of("{forward: 1ms, backward: 1ms, jitter: {exponential: {mean: 1ms}}}", 2, 1);
  using enum ActionKind;
  const Tick drawn = cost.of(forward, Stage(1), Microbatch(7));
  EXPECT_EQ(cost.of(forward, Stage(1), Microbatch(7)), drawn);
  EXPECT_NE(cost.of(backward, Stage(1), Microbatch(7)), drawn);
  EXPECT_NE(cost.of(forward, Stage(0), Microbatch(7)), drawn);
  EXPECT_NE(cost.of(forward, Stage(1), Microbatch(8)), drawn);
  EXPECT_NE(other.of(forward, Stage(1), Microbatch(7)), drawn);
  EXPECT_EQ(cost.of(update, Stage(0), Microbatch(0)), Tick(0))
      << "what takes no time has no jitter";
}

TEST(Jitter, HasTheMomentsOfItsDistribution) {
  const auto mean_and_least = [](const std::string& text) {
    const Jitter jitter = Jitter::from(check_params(Jitter::spec(), parameters_from(text), ""));
    double sum = 0;
    double least = INFINITY;
    const int n = 50'000;
    for (int i = 0; i < n; ++i) {
      const Tick t = jitter.apply(Tick(1'000'000), RandomStream(3, DrawKind::cost_jitter, 0,
                                                                static_cast<std::uint64_t>(i)));
      sum += static_cast<double>(t.value);
      least = std::min(least, static_cast<double>(t.value));
    }
    return std::pair{sum / n, least};
  };
  EXPECT_EQ(mean_and_least("{constant: 500us}"), (std::pair{1.5e6, 1.5e6}));
  const auto [uniform, uniform_least] = mean_and_least("{uniform: {low: 1ms, high: 3ms}}");
  EXPECT_NEAR(uniform, 3e6, 2e4);
  EXPECT_GE(uniform_least, 2e6);
  const auto [exponential, exponential_least] = mean_and_least("{exponential: {mean: 2ms}}");
  EXPECT_NEAR(exponential, 3e6, 5e4);
  EXPECT_GE(exponential_least, 1e6);
  // The mean of a lognormal factor of median 1 is exp(sigma^2 / 2).
  EXPECT_NEAR(mean_and_least("{lognormal: {sigma: 0.5}}").first, 1e6 * std::exp(0.125), 2e4);
}

TEST(LinkModel, MessagesFollowEachOtherAtTheBandwidth) {
  LinkModel link = link_of("{latency: 1us, bandwidth: 1GB/s}", 2);
  link.set_payload_bytes(500);  // 500 ns
  LinkQueue queue;
  const auto arrival = [&](std::int64_t m, std::int64_t made) {
    return link.arrival(queue, Stage(0), Stage(1), Microbatch(m), Tick(made)).value;
  };
  EXPECT_EQ(arrival(0, 0), 1500);
  EXPECT_EQ(arrival(1, 100), 2000) << "the link is busy until 500";
  EXPECT_EQ(arrival(2, 5000), 6500) << "the link is free again";
}

TEST(LinkModel, NothingOvertakesUnderJitter) {
  const LinkModel link = link_of("{latency: 10, jitter: {exponential: {mean: 50}}}", 2);
  LinkQueue queue;
  Tick last(0);
  for (int m = 0; m < 1000; ++m) {
    const Tick arrival = link.arrival(queue, Stage(0), Stage(1), Microbatch(m), Tick(m));
    EXPECT_GE(arrival, last);
    EXPECT_GE(arrival, Tick(m + 10));
    last = arrival;
  }
}

TEST(LinkModel, OverridesAreForOneDirectionOfOneLink) {
  const LinkModel link = link_of("{latency: 2, overrides: [{from: 1, to: 2, latency: 9}]}", 3);
  const auto latency = [&](int from, int to) {
    LinkQueue queue;
    return link.arrival(queue, Stage(from), Stage(to), Microbatch(0), Tick(0)).value;
  };
  EXPECT_EQ(latency(0, 1), 2);
  EXPECT_EQ(latency(1, 2), 9);
  EXPECT_EQ(latency(2, 1), 2);
  EXPECT_THROW(link_of("{overrides: [{from: 0, to: 2, latency: 1}]}", 3), ParamError);
  EXPECT_THROW(link_of("{overrides: [{from: 2, to: 3, latency: 1}]}", 3), ParamError);
}

// 2 (R - 1) steps of latency and bytes / R: Patarasuk and Yuan, 2009.
TEST(LinkModel, ARingAllReduceTakesTwiceTheMembersLessOneSteps) {
  EXPECT_EQ(link_of("{latency: 3}", 2).ring_all_reduce(1000, 4), Tick(18));
  EXPECT_EQ(link_of("{latency: 3}", 2).ring_all_reduce(1000, 1), Tick(0));
  EXPECT_EQ(link_of("{latency: 1us, bandwidth: 1GB/s}", 2).ring_all_reduce(4000, 4),
            Tick(6 * (1000 + 1000)));
}

TEST(LocalSgd, AChargedSyncDelaysEveryRoundByTheRing) {
  const auto job = [](const char* sync) {
    Value job = job_with({"local_sgd", parameters_from("{stages: 3, replicas: 4, local_steps: 2,"
                                                       " microbatches: 24}")});
    set_path(job, "schedule.local_sgd.sync", sync);
    set_path(job, "link.latency", 5);
    return job;
  };
  Recorder free, charged;
  run_job(job("free"), free);
  run_job(job("ring"), charged);
  EXPECT_EQ(charged.timeline.back().end - free.timeline.back().end, Tick(3 * 2 * 3 * 5));
  EXPECT_EQ(charged.curve.back().value, free.curve.back().value) << "time changes, weights do not";
}

TEST(Run, JitterOnCostsAndLinksRepeatsExactly) {
  Value job = job_with({"pipedream", parameters_from("{stages: 4, microbatches: 60}")});
  job.set("cost",
          parameters_from("{forward: 100us, backward: 200us, jitter: {lognormal: {sigma: 0.4}}}"));
  job.set("link",
          parameters_from("{latency: 50us, bandwidth: 100MB/s, jitter: {uniform: {high: 90us}}}"));
  job.set("observe", parameters_from("{objective: {every_updates: 1}}"));
  Recorder a, b;
  run_job(job, a);
  run_job(job, b);
  EXPECT_EQ(a.timeline, b.timeline);
  EXPECT_EQ(a.curve, b.curve);
  job.set("seed", 1);
  Recorder other;
  run_job(job, other);
  EXPECT_NE(a.timeline, other.timeline);
}

TEST(CheckJob, ABandwidthInAJobOfTicksIsRefused) {
  Value job = job_with({"pipedream", parameters_from("{stages: 2, microbatches: 4}")});
  job.set("link", parameters_from("{latency: 2, bandwidth: 1GB/s}"));
  try {
    check_job(job);
    FAIL() << "nothing was thrown";
  } catch (const ParamError& error) {
    EXPECT_THAT(error.what(), HasSubstr("times are mixed"));
  }
}

}  // namespace
}  // namespace pipewright
