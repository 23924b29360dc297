// Ranks of a local pool that die (SIGKILL) or hang (SIGSTOP), in every phase of a run: the run on
// that rank is done again and ends with the bytes of one that nobody disturbed, runs of others are
// given back, and the pool is whole again.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <thread>

#include "proto/codec/job_file.hpp"
#include "tests/e2e/processes.hpp"

namespace pipewright::e2e {
namespace {

namespace fs = std::filesystem;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

const fs::path binaries = fs::path(PIPEWRIGHT_BINARY_DIR) / "bin";

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string job_text(const std::string& schedule, const std::string& more = {}) {
  return "objective: {quadratic: {generate: {kind: tridiagonal, examples: 600, parameters: 512},"
         " batch_size: 5}}\n"
         "schedule: {" +
         schedule +
         "}\n"
         "optimizer: {sgd: {learning_rate: 0.001}}\n" +
         more;
}

class Faults : public testing::Test {
 protected:
  static constexpr std::size_t ranks = 4;

  Faults() {
    std::string name = (fs::temp_directory_path() / "pipewright-e2e-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~Faults() override {
    if (HasFailure()) std::cerr << read_file(data() + "/pool-local.log");
    if (daemon) {
      const std::vector<pid_t> all = descendants(daemon->pid());
      daemon->signal(SIGTERM);
      const Outcome end = daemon->wait();
      EXPECT_EQ(end.status, 0) << end.err;
      for (const pid_t pid : all) EXPECT_TRUE(wait_gone(pid)) << "process " << pid << " is left";
      if (HasFailure()) std::cerr << end.err;
    }
    fs::remove_all(path);
  }

  void SetUp() override {
    if (!fs::exists(binaries / "pipewright-worker")) {
      GTEST_SKIP() << "there is no pipewright-worker in " << binaries << ": built without MPI";
    }
    daemon = std::make_unique<Running>(std::vector<std::string>{
        (binaries / "pipewrightd").string(), "--data-dir", data(), "--port", "0", "--ranks",
        std::to_string(ranks), "--silence-max", "2"});
    until([&] { return is_whole(); });
  }

  std::string data() const { return (path / "data").string(); }
  Outcome cli(std::vector<std::string> words) const {
    words.insert(words.begin(), (binaries / "pipewright").string());
    words.insert(words.end(), {"--data-dir", data()});
    return run(words);
  }
  static Value json(const std::string& text) { return JobFile::parse(text, "output").tree(); }
  std::string submit(const std::string& name, const std::string& text) const {
    const std::string file = (path / (name + ".yaml")).string();
    std::ofstream(file) << text;
    const Outcome outcome = cli({"submit", file});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.out.substr(0, outcome.out.find('\n'));
  }
  Value show(const std::string& id) const { return json(cli({"show", id, "--json"}).out); }
  bool is_state(const std::string& id, const std::string& state) const {
    return show(id).at("state").as_text().ends_with(state);
  }
  /// How much of its ticks a running job has done; 0 before it runs.
  double done(const std::string& id) const {
    const Value job = show(id);
    const Value* progress = job.find("progress");
    if (progress == nullptr || progress->find("ticks_total") == nullptr) return 0;
    const Value* ticks = progress->find("ticks_done");
    const auto number = [](const Value& value) {
      return value.is_text() ? std::stod(value.as_text()) : value.as_real();
    };
    return ticks == nullptr ? 0 : number(*ticks) / number(progress->at("ticks_total"));
  }
  /// A pool with all of its ranks is attached.
  bool is_whole() const {
    const Outcome outcome = cli({"pools", "--json"});
    if (outcome.status != 0 || outcome.out.empty()) return false;
    const Value list = json(outcome.out);
    const Value* pools = list.find("pools");
    if (pools == nullptr || pools->as_list().empty()) return false;
    const Value& pool = pools->as_list().front();
    const Value* hosts = pool.find("rank_hosts");
    return pool.at("state").as_text() == "attached" && hosts != nullptr &&
           hosts->as_list().size() == ranks;
  }
  /// The process of a rank of the pool, by what its launcher has told it.
  pid_t process_of(std::size_t rank) const {
    const std::string wanted = std::string("\0OMPI_COMM_WORLD_RANK=", 22) + std::to_string(rank);
    for (const pid_t pid : descendants(daemon->pid(), "pipewright-work")) {
      const std::string variables = read_file("/proc/" + std::to_string(pid) + "/environ");
      if (variables.find(wanted + std::string(1, '\0')) != std::string::npos) return pid;
    }
    throw std::runtime_error("there is no rank " + std::to_string(rank));
  }

  template <class Question>
  static void until(Question&& question) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
    while (!question()) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

  /// What it leaves is what a run in one process leaves.
  void expect_undisturbed_bytes(const std::string& id, const std::string& name) const {
    const std::string here = (path / (name + "-pool")).string();
    const std::string alone = (path / (name + "-alone")).string();
    const std::string file = (path / (name + ".yaml")).string();
    EXPECT_EQ(cli({"wait", id}).status, 0) << cli({"log", id}).out;
    EXPECT_EQ(cli({"export", id, "--out", here}).status, 0);
    EXPECT_EQ(run({(binaries / "pipewright").string(), "run", file, "--out", alone}).status, 0);
    for (const std::string one :
         {"weights.npy", "objective.csv", "last_stage_loss.csv", "timeline.csv"}) {
      const std::string bytes = read_file(fs::path(here) / one);
      EXPECT_FALSE(bytes.empty()) << one;
      EXPECT_TRUE(bytes == read_file(fs::path(alone) / one)) << one << " differs";
    }
  }
  std::int64_t attempts(const std::string& id) const { return show(id).at("attempt").as_integer(); }

  /// Job 1 is on ranks 0 and 1, job 2 on ranks 2 and 3.
  void submit_both(const std::string& victim) {
    bystander_id = submit("bystander", job_text("pipedream: {stages: 2, microbatches: 600000}"));
    until([&] { return done(bystander_id) > 0; });
    victim_id = submit("victim", victim);
  }
  /// After rank 3 or 2 was lost.
  void expect_recovery(const std::string& why) {
    expect_undisturbed_bytes(victim_id, "victim");
    until([&] { return is_state(bystander_id, "RUNNING"); });
    EXPECT_EQ(cli({"cancel", bystander_id}).status, 0);
    EXPECT_EQ(attempts(victim_id), 2);
    EXPECT_THAT(cli({"log", victim_id}).out, HasSubstr("attempt 1 was lost: rank " + why));
    EXPECT_THAT(cli({"log", bystander_id}).out, HasSubstr("attempt 1 was given back: "));
    EXPECT_THAT(cli({"log", bystander_id}).out, Not(HasSubstr("was lost")));
    EXPECT_TRUE(is_whole());
  }

  fs::path path;
  std::string bystander_id, victim_id;
  std::unique_ptr<Running> daemon;
};

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
