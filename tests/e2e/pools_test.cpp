// Pools that come and go: a daemon without one of its own, and worlds of pipewright-worker that are
// started and told to leave by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "core/base/text.hpp"
#include "proto/codec/job_file.hpp"
#include "tests/e2e/processes.hpp"

namespace pipewright::e2e {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

const fs::path binaries = fs::path(PIPEWRIGHT_BINARY_DIR) / "bin";
const std::string worker = (binaries / "pipewright-worker").string();
const std::string mpirun = std::string(PIPEWRIGHT_SOURCE_DIR) + "/tests/support/mpirun.sh";

/// Takes a few seconds, with 150,000 microbatches.
std::string job_text(int microbatches = 150'000) {
  return "objective: {quadratic: {generate: {kind: tridiagonal, examples: 600, parameters: 512},"
         " batch_size: 5}}\n"
         "schedule: {pipedream: {stages: 2, microbatches: " +
         std::to_string(microbatches) +
         "}}\n"
         "optimizer: {sgd: {learning_rate: 0.001}}\n";
}

class Pools : public testing::Test {
 protected:
  Pools() {
    std::string name = (fs::temp_directory_path() / "pipewright-e2e-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~Pools() override {
    daemon.reset();
    fs::remove_all(path);
  }

  void SetUp() override {
    if (!fs::exists(worker)) {
      GTEST_SKIP() << "there is no pipewright-worker in " << binaries << ": built without MPI";
    }
    daemon = std::make_unique<Running>(
        std::vector<std::string>{(binaries / "pipewrightd").string(), "--data-dir", data(),
                                 "--port", "0", "--ranks", "0", "--log-level", "error"});
    until([&] { return fs::exists(data() + "/daemon.json"); });
    url = JobFile::read(data() + "/daemon.json").tree().at("url").as_text();
  }

  std::string data() const { return (path / "data").string(); }
  Outcome cli(std::vector<std::string> words) const {
    words.insert(words.begin(), (binaries / "pipewright").string());
    words.insert(words.end(), {"--data-dir", data()});
    return run(words);
  }
  std::vector<std::string> world(int ranks, std::vector<std::string> options,
                                 const std::string& program = worker) const {
    // At SIGTERM mpirun waits so many seconds, passes it on, waits as long again, and kills.
    std::vector<std::string> words{"/usr/bin/env",
                                   "OMPI_MCA_odls_base_sigkill_timeout=3",
                                   mpirun,
                                   std::to_string(ranks),
                                   program,
                                   "--daemon",
                                   url,
                                   "--token-file",
                                   data() + "/token"};
    words.insert(words.end(), options.begin(), options.end());
    return words;
  }
  std::string pools() const { return cli({"pools", "--json"}).out; }

  std::unique_ptr<Running> attach(const std::string& name, int ranks = 2,
                                  const std::string& program = worker) const {
    auto pool = std::make_unique<Running>(world(ranks, {"--name", name}, program));
    until([&] { return pools().find('"' + name + '"') != std::string::npos; });
    return pool;
  }

  /// Exports job 1 to path/pools: what it has left is what a run in one process leaves.
  void expect_undisturbed_bytes(const std::string& job) const {
    EXPECT_EQ(cli({"export", "1", "--out", (path / "pools").string()}).status, 0);
    const std::string alone = (path / "alone").string();
    EXPECT_EQ(run({(binaries / "pipewright").string(), "run", job, "--out", alone}).status, 0);
    expect_same_bytes(
        path / "pools", alone,
        {"objective.csv", "last_stage_loss.csv", "weights.npy", "timeline.csv", "schedule.csv"});
  }

  /// A running job's pool gets the signal: the job ends on the next pool, with the bytes of a run
  /// that nobody disturbed.
  Outcome leave_in_mid_run(int signal) {
    const std::string job = (path / "job.yaml").string();
    std::ofstream(job) << job_text(500'000);  // must not be done when mpirun passes the signal on
    const auto one = attach("one");
    const auto two = attach("two");
    EXPECT_EQ(cli({"submit", job}).out, "1\n");  // to the older one
    until([&] { return cli({"show", "1"}).out.find("RUNNING") != std::string::npos; });
    one->signal(signal);
    const Outcome left = one->wait();
    EXPECT_EQ(cli({"wait", "1"}).status, 0);
    EXPECT_THAT(cli({"log", "1"}).out,
                HasSubstr("attempt 1 was given back: the pool left: told to"));
    EXPECT_THAT(pools(), Not(HasSubstr("\"one\"")));
    expect_undisturbed_bytes(job);
    two->signal(SIGUSR1);
    EXPECT_EQ(two->wait().status, 0);
    return left;
  }

  fs::path path;
  std::string url;
  std::unique_ptr<Running> daemon;
};

/// The tick of the newest checkpoint in a run's folder of which any part is there; 0: none.
std::int64_t newest_checkpoint(const fs::path& folder) {
  std::int64_t newest = 0;
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator(folder, gone)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".part")) continue;
    const auto tick = parse_integer(name.substr(name.rfind('-') + 1));
    newest = std::max(newest, tick.value_or(0));
  }
  return newest;
}

/// Each loss comes after a further checkpoint, so they do not count; and each pool has another
/// number of ranks.
TEST_F(Pools, ARunThatIsKilledThreeTimesGoesOnFromItsCheckpointsAndLeavesTheSameBytes) {
  const std::string job = (path / "job.yaml").string();
  std::ofstream(job) << job_text() << "checkpoint: {every: 4000}\n";
  EXPECT_EQ(cli({"submit", job}).out, "1\n");
  const fs::path checkpoints = fs::path(data()) / "jobs/1/0/checkpoint";
  std::int64_t before = 0;
  int attempt = 0;
  for (const int ranks : {2, 1, 3}) {
    const auto pool = attach("pool " + std::to_string(++attempt), ranks);
    // When the second part of the newer one is there, the older one is whole.
    until([&] { return newest_checkpoint(checkpoints) > before + 8000; });
    before = newest_checkpoint(checkpoints);
    const auto workers = descendants(pool->pid(), "pipewright-work");
    ASSERT_FALSE(workers.empty());
    ::kill(workers.back(), SIGKILL);
    EXPECT_NE(pool->wait().status, 0);
    until([&] { return cli({"show", "1"}).out.find("QUEUED") != std::string::npos; });
  }
  const auto last = attach("pool 4");
  EXPECT_EQ(cli({"wait", "1"}).status, 0) << cli({"log", "1"}).out;
  EXPECT_FALSE(fs::exists(checkpoints));
  expect_undisturbed_bytes(job);
  const Value summary = JobFile::read((path / "pools/summary.json").string()).tree();
  EXPECT_EQ(summary.at("attempt").as_integer(), 4);
  EXPECT_EQ(summary.at("continued_from_ticks").as_list().size(), 3u);
  last->signal(SIGUSR1);
  EXPECT_EQ(last->wait().status, 0);
}

/// The same program as another build: a copy with another build id.
void build_again(const fs::path& to) {
  std::ifstream in(worker, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  // The note's header: 4 bytes of name, 20 of the id, type 3 (NT_GNU_BUILD_ID), its name.
  const std::string note("\4\0\0\0\x14\0\0\0\3\0\0\0GNU\0", 16);
  const std::size_t at = bytes.find(note);
  ASSERT_NE(at, std::string::npos) << "the worker was linked without a build id";
  bytes[at + note.size()] ^= 1;
  std::ofstream(to, std::ios::binary) << bytes;
  fs::permissions(to, fs::perms::owner_all);
}

TEST_F(Pools, ARunThatAnotherBinaryStartsAgainSaysSoInItsSummary) {
  const std::string job = (path / "job.yaml").string();
  std::ofstream(job) << job_text();
  const std::string rebuilt = (path / "pipewright-worker").string();
  build_again(rebuilt);
  EXPECT_EQ(cli({"submit", job}).out, "1\n");
  {
    const auto pool = attach("one");
    until([&] { return cli({"show", "1"}).out.find("RUNNING") != std::string::npos; });
    pool->signal(SIGUSR1);
    EXPECT_EQ(pool->wait().status, 0);
  }
  const auto pool = attach("two", 2, rebuilt);
  const Outcome waited = cli({"wait", "1"});
  EXPECT_EQ(waited.status, 0) << cli({"log", "1"}).out;
  const std::string note = "its attempts ran by pipewright ";
  EXPECT_THAT(cli({"log", "1"}).out, HasSubstr(note));
  EXPECT_THAT(cli({"show", "1"}).out, HasSubstr(note));
  expect_undisturbed_bytes(job);
  const Value summary = JobFile::read((path / "pools/summary.json").string()).tree();
  EXPECT_THAT(summary.at("note").as_text(), HasSubstr(note));
  const Value& first = summary.at("earlier_attempts").as_list().at(0);
  EXPECT_EQ(first.at("cpu_type"), summary.at("cpu_type"));
  EXPECT_EQ(first.at("program").at("commit"), summary.at("program").at("commit"));
  EXPECT_NE(first.at("program").at("build"), summary.at("program").at("build"));
  const Value alone = JobFile::read((path / "alone/summary.json").string()).tree();
  EXPECT_FALSE(alone.has("note"));
  pool->signal(SIGUSR1);
  EXPECT_EQ(pool->wait().status, 0);
}

TEST_F(Pools, ARunIsGivenBackAtSigterm) {
  // mpirun's own status is that of a job that was told to end.
  EXPECT_THAT(leave_in_mid_run(SIGTERM).err, HasSubstr("pool 'one' ends: told to stop"));
}

TEST_F(Pools, ARunIsGivenBackAtSigusr1AndTheWorldEndsInOrder) {
  const Outcome left = leave_in_mid_run(SIGUSR1);
  EXPECT_EQ(left.status, 0) << left.err;
  EXPECT_THAT(left.err, HasSubstr("pool 'one' ends: told to stop"));
}

TEST_F(Pools, ASignalToAnyRankIsForAllOfThem) {
  const auto pool = attach("one");
  const std::vector<pid_t> ranks = descendants(pool->pid(), "pipewright-work");
  ASSERT_EQ(ranks.size(), 2U);
  ::kill(ranks.back(), SIGTERM);
  EXPECT_EQ(pool->wait().status, 0);
}

TEST_F(Pools, AWorldOfAnotherSizeThanExpectedIsRefusedOnce) {
  const Outcome outcome = run(world(2, {"--expect-ranks", "3"}));
  EXPECT_EQ(outcome.status, 2);
  const std::string text = "MPI's world has 2 ranks, but --expect-ranks is 3";
  EXPECT_THAT(outcome.err, HasSubstr(text));
  EXPECT_EQ(outcome.err.find(text), outcome.err.rfind(text));
}

TEST_F(Pools, WorldsOfOneUnderSrunAreRefused) {
  std::vector<std::string> words{"/usr/bin/env",
                                 "SLURM_STEP_ID=0",
                                 "SLURM_STEP_NUM_TASKS=4",
                                 "SLURM_PROCID=0",
                                 worker,
                                 "--daemon",
                                 url,
                                 "--token-file",
                                 data() + "/token"};
  const Outcome first = run(words);
  EXPECT_EQ(first.status, 2);
  EXPECT_THAT(first.err, HasSubstr("world has 1 rank, but SLURM_STEP_NUM_TASKS of this srun is 4"));
  words[3] = "SLURM_PROCID=1";
  const Outcome second = run(words);
  EXPECT_EQ(second.status, 2);
  EXPECT_THAT(second.err, IsEmpty()) << "one of the ranks says it";
}

}  // namespace
}  // namespace pipewright::e2e
