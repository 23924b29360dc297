// Ranks of a local pool that die (SIGKILL) or hang (SIGSTOP), in every phase of a run: the run on
// that rank is done again and ends with the bytes of one that nobody disturbed, runs of others are
// given back, and the pool is whole again.
#include "tests/e2e/faults.hpp"

#include <fcntl.h>
#include <sys/stat.h>

namespace pipewright::e2e {
namespace {

/// Half of fill-drain's ticks are forwards only, the other half backwards only.
const char* const fill_drain = "fill_drain: {stages: 2, microbatches: 20000}";

struct Phase {
  const char* name;
  const char* schedule;
  const char* more;
  double from, to;  // part of its ticks that is done
};

class DeadRank : public Faults, public testing::WithParamInterface<Phase> {};

TEST_P(DeadRank, CostsTheRunOnItOneAttemptAndOthersNone) {
  const Phase& phase = GetParam();
  submit_both(job_text(phase.schedule, phase.more));
  double seen = 0;
  until([&] { return (seen = done(victim_id)) > phase.from; });
  ASSERT_LT(seen, phase.to) << "the phase is over before it is seen";
  ::kill(process_of(3), SIGKILL);
  expect_recovery("3 (host ");
}

INSTANTIATE_TEST_SUITE_P(
    Phases, DeadRank,
    testing::Values(Phase{"Forward", fill_drain, "", 0, 0.45},
                    Phase{"Backward", fill_drain, "", 0.5, 0.95},
                    // Every second action is a sync.
                    Phase{"Sync",
                          "local_sgd: {stages: 2, replicas: 2, local_steps: 1, microbatches: 40000,"
                          " placement: colocated}",
                          "", 0, 0.9},
                    // Nearly all of the time goes into evaluations, over all ranks.
                    Phase{"Gathering", "pipedream: {stages: 2, microbatches: 4000}",
                          "observe: {objective: {every_updates: 1}}\n", 0, 0.9}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(Faults, ARankThatDiesWhileItStartsARun) {
  // The ranks wait for somebody to write the data: for ever, the first time.
  const fs::path x = path / "x.npy";
  const std::string job = "objective: {quadratic: {data: {npy: {x: " + x.string() +
                          ", y: " + (path / "y.npy").string() +
                          "}}, batch_size: 5}}\n"
                          "schedule: {pipedream: {stages: 2, microbatches: 100}}\n"
                          "optimizer: {sgd: {learning_rate: 0.001}}\n";
  const auto npy = [](const std::string& shape, std::size_t count) {
    std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + ", }";
    header.resize((10 + header.size()) / 64 * 64 + 64 - 10 - 1, ' ');
    header += '\n';
    std::string text("\x93NUMPY\x01\x00", 8);
    text += static_cast<char>(header.size() & 0xff);
    text += static_cast<char>(header.size() >> 8);
    text += header;
    for (std::size_t i = 0; i < count; ++i) {
      const double value = static_cast<double>(i % 7) - 3;
      text.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    return text;
  };
  std::ofstream(path / "y.npy", std::ios::binary) << npy("(40,)", 40);
  std::ofstream(x, std::ios::binary) << npy("(40, 8)", 320);
  bystander_id = submit("bystander", job_text("pipedream: {stages: 2, microbatches: 600000}"));
  until([&] { return done(bystander_id) > 0; });
  fs::rename(x, path / "data.npy");
  ASSERT_EQ(::mkfifo(x.c_str(), 0600), 0);
  victim_id = submit("victim", job);
  until([&] { return is_state(victim_id, "STARTING"); });
  // Once somebody reads, this does not fail; what it opens is closed when that one has gone.
  int writer = -1;
  until([&] { return (writer = ::open(x.c_str(), O_WRONLY | O_NONBLOCK)) >= 0; });
  fs::rename(path / "data.npy", x);
  ::kill(process_of(3), SIGKILL);
  expect_recovery("3 (host ");
  ::close(writer);
}

TEST_F(Faults, ARankThatDiesWhileNothingRuns) {
  for (const std::size_t rank : {std::size_t{0}, ranks - 1}) {
    const pid_t pid = process_of(rank);
    ::kill(pid, SIGKILL);
    ASSERT_TRUE(wait_gone(pid));
    until([&] {
      return descendants(daemon->pid(), "pipewright-work").size() == ranks && is_whole();
    });
  }
  victim_id = submit("victim", job_text("pipedream: {stages: 4, microbatches: 1000}"));
  expect_undisturbed_bytes(victim_id, "victim");
  EXPECT_EQ(attempts(victim_id), 1);
}

TEST_F(Faults, ARankThatDiesWhileARunEnds) {
  victim_id = submit("victim", job_text("pipedream: {stages: 2, microbatches: 40000}"));
  until([&] { return done(victim_id) >= 1; });
  // The run's ranks may have left it already: then it is rank 0 that still has its files.
  ::kill(process_of(1), SIGKILL);
  expect_undisturbed_bytes(victim_id, "victim");
  EXPECT_THAT(attempts(victim_id), AnyOf(1, 2));
  until([&] { return is_whole(); });
}

class EachRank : public Faults, public testing::WithParamInterface<std::size_t> {};

TEST_P(EachRank, DiesAndItsRunIsDoneAgain) {
  const std::string job = job_text("pipedream: {stages: 4, microbatches: 20000}");
  victim_id = submit("victim", job);
  until([&] { return done(victim_id) > 0; });
  ::kill(process_of(GetParam()), SIGKILL);
  expect_undisturbed_bytes(victim_id, "victim");
  EXPECT_EQ(attempts(victim_id), 2);
  EXPECT_THAT(cli({"log", victim_id}).out, HasSubstr("attempt 1 was lost: "));
  EXPECT_TRUE(is_whole());
}

INSTANTIATE_TEST_SUITE_P(Ranks, EachRank, testing::Values(0, 1, 2, 3));

TEST_F(Faults, ARunThatLosesItsRankAtEveryAttemptFailsAndSaysWhichRank) {
  victim_id = submit("victim", job_text("pipedream: {stages: 4, microbatches: 3000000}"));
  for (int attempt = 1; attempt <= 3; ++attempt) {
    until([&] { return attempts(victim_id) == attempt && is_state(victim_id, "RUNNING"); });
    ::kill(process_of(2), SIGKILL);
    until([&] { return !is_state(victim_id, "RUNNING"); });
  }
  until([&] { return is_state(victim_id, "FAILED"); });
  EXPECT_THAT(show(victim_id).at("message").as_text(),
              HasSubstr("attempt 3, the last one, was lost: rank 2 (host "));
}

TEST_F(Faults, ARankThatHangsIsFoundByItsDeadline) {
  submit_both(job_text("pipedream: {stages: 2, microbatches: 40000}"));
  until([&] { return done(victim_id) > 0; });
  const pid_t rank = process_of(3);
  ::kill(rank, SIGSTOP);
  expect_recovery("3 (host ");
  EXPECT_TRUE(wait_gone(rank)) << "the stopped process is left";
}

TEST_F(Faults, ACoordinatorThatHangsIsReplacedWithAllOfItsRanks) {
  victim_id = submit("victim", job_text("pipedream: {stages: 2, microbatches: 40000}"));
  until([&] { return done(victim_id) > 0; });
  const std::vector<pid_t> old = descendants(daemon->pid());
  ::kill(process_of(0), SIGSTOP);
  expect_undisturbed_bytes(victim_id, "victim");
  EXPECT_EQ(attempts(victim_id), 2);
  EXPECT_THAT(cli({"log", victim_id}).out, HasSubstr("the pool was silent"));
  for (const pid_t pid : old) EXPECT_TRUE(wait_gone(pid)) << "process " << pid << " is left";
  EXPECT_TRUE(is_whole());
}

}  // namespace
}  // namespace pipewright::e2e
