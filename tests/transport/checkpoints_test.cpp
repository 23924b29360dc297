// Coordinator and ranks in one thread, taken away in the middle of a run: another set of them, with
// another number of ranks, goes on from what the listener has stored.
#include <gmock/gmock.h>
#include <unistd.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>

#include "core/train/result_files.hpp"
#include "proto/codec/checkpoint_folder.hpp"
#include "proto/codec/json.hpp"
#include "tests/support/runs.hpp"
#include "tests/support/schedule_cases.hpp"
#include "worker/runtime/coordinator.hpp"
#include "worker/runtime/rank_worker.hpp"
#include "worker/transport/in_process.hpp"

namespace pipewright {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using Files = std::map<std::string, std::string>;

/// A daemon: keeps the files of the last two checkpoints' rows and of all values.
class Daemon : public RunListener {
 public:
  explicit Daemon(fs::path folder) : stored(folder / "daemon") {}

  void started(RunId, const Maker& by) override { maker = by; }
  void points(RunId, std::uint64_t, std::vector<Point>) override {}
  void progress(RunId, const Progress&) override {}
  void log(RunId, LogLine line) override { logged.push_back(line.text); }
  void ended(RunId, RunOutcome how, const std::string& message, const std::string& folder,
             const Value& result) override {
    outcome = how;
    why = message;
    summary = result;
    if (how != RunOutcome::succeeded) return;
    for (const std::string& name : ResultFiles::names()) {
      std::ifstream in(folder + "/" + name, std::ios::binary);
      std::ostringstream text;
      text << in.rdbuf();
      if (in) files[name] = text.str();
    }
    fs::remove_all(folder);
  }
  bool keeps_up() const override { return true; }
  bool stores_checkpoints() const override { return true; }
  void checkpoint(RunId run, Tick tick, const std::string& folder,
                  const std::vector<std::string>& names) override {
    for (const std::string& name : names) stored.write(name, CheckpointFolder(folder).read(name));
    stored.keep_two(tick);
    ticks.push_back(tick);
    acknowledgements.push_back({run, tick});
  }
  void want_checkpoint(const CheckpointWanted& wanted) override { asked.push_back(wanted); }

  /// What it has to say to the pool. Parts are small, so that there are many.
  void answer(Coordinator& coordinator) {
    for (const CheckpointStored& one : std::exchange(acknowledgements, {})) {
      coordinator.on_stored(one);
    }
    for (const CheckpointWanted& wanted : std::exchange(asked, {})) {
      CheckpointPiece piece{wanted.run, wanted.name, wanted.offset_bytes, {}, false};
      std::tie(piece.data, piece.last) = stored.read_part(wanted.name, wanted.offset_bytes, 1000);
      coordinator.on_piece(piece);
    }
  }
  std::vector<std::string> names_of_newest() {
    std::vector<std::string> refused, names;
    if (const auto newest = stored.newest(nullptr, refused)) {
      names = newest->rows;
      names.insert(names.end(), newest->values.begin(), newest->values.end());
    }
    return names;
  }

  CheckpointFolder stored;
  std::vector<Tick> ticks;
  std::vector<CheckpointStored> acknowledgements;
  std::vector<CheckpointWanted> asked;
  std::vector<std::string> logged;
  Maker maker;
  std::optional<RunOutcome> outcome;
  std::string why;
  Value summary;
  Files files;
};

/// A pool, each rank of which has its turn after the other.
class Pool {
 public:
  Pool(int ranks, RunListener& listener, const std::string& spool) : world_(ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      transports_.push_back(world_.rank(rank));
      workers_.push_back(std::make_unique<RankWorker>(*transports_.back()));
    }
    coordinator_.emplace(*transports_.front(), listener, spool);
  }
  Coordinator& coordinator() { return *coordinator_; }

  void turn() {
    for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
      while (const auto arrival = transports_[rank]->poll_control()) {
        ControlMessage message = decode_control(arrival->bytes);
        const bool to_rank = std::holds_alternative<RankStart>(message) ||
                             std::holds_alternative<WindowMessage>(message) ||
                             std::holds_alternative<RankStop>(message) ||
                             std::holds_alternative<StateTaken>(message) ||
                             std::holds_alternative<RestoreChunk>(message);
        if (to_rank) {
          workers_[rank]->on_control(std::move(message));
        } else {
          coordinator_->on_control(std::move(message));
        }
      }
      workers_[rank]->poll();
    }
    coordinator_->poll();
  }

 private:
  InProcessWorld world_;
  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<std::unique_ptr<RankWorker>> workers_;
  std::optional<Coordinator> coordinator_;
};

class Checkpoints : public testing::Test {
 protected:
  Checkpoints()
      : path_(fs::temp_directory_path() / ("pipewright-pool-" + std::to_string(getpid()))) {}
  ~Checkpoints() override { fs::remove_all(path_); }

  /// One attempt on a new pool, until its end or until the daemon has `count` more checkpoints.
  void attempt(Daemon& daemon, const Value& job, int ranks, std::size_t count) {
    Pool pool(ranks, daemon, (path_ / "spool").string());
    StartRun start{.run = {1, 0, ++attempts_},
                   .spec = job,
                   .ranks = std::vector<std::uint32_t>(static_cast<std::size_t>(ranks)),
                   .checkpoint_files = daemon.names_of_newest(),
                   .makers = before_};
    std::iota(start.ranks.begin(), start.ranks.end(), 0U);
    pool.coordinator().start(start);
    const std::size_t until = daemon.ticks.size() + count;
    while (!daemon.outcome && (count == 0 || daemon.ticks.size() < until)) {
      pool.turn();
      daemon.answer(pool.coordinator());
    }
  }

  Files files_of(const Value& job) {
    const std::string folder = (path_ / "alone").string();
    fs::create_directories(folder);
    ResultFiles files(folder);
    const RunResult result = run_job(job, files);
    files.finish(result.summary, result.weights);
    Files all;
    for (const std::string& name : ResultFiles::names()) {
      std::ifstream in(folder + "/" + name, std::ios::binary);
      std::ostringstream text;
      text << in.rdbuf();
      if (in) all[name] = text.str();
    }
    fs::remove_all(folder);
    return all;
  }

  void expect_same(Files a, Files b) {
    a.erase("summary.json");
    b.erase("summary.json");
    EXPECT_GE(a.size(), 5u);
    EXPECT_EQ(a.size(), b.size());
    for (const auto& [name, bytes] : a) EXPECT_TRUE(b[name] == bytes) << name << " differs";
  }

  fs::path path_;
  std::vector<Maker> before_;  // who made the attempts before, as the daemon says
  std::uint32_t attempts_ = 0;
};

TEST_F(Checkpoints, ARunGoesOnOnAnyNumberOfRanksAndLeavesTheSameBytes) {
  for (const char* schedule :
       {"{pipedream: {stages: 4, microbatches: 3000}}",
        "{rpd: {stages: 4, updates: 6000, delay_max: 14}}",
        "{local_sgd: {stages: 2, replicas: 3, local_steps: 4, microbatches: 3000,"
        " placement: spread}}"}) {
    Value job = job_with({"pipedream", Value::map()});
    job.set("schedule", parameters_from(schedule));
    set_path(job, "observe.theory", true);
    set_path(job, "observe.objective.every_ticks", 7);
    job.set("checkpoint", parameters_from("{every: 50}"));
    Daemon daemon(path_);
    for (const int ranks : {3, 1, 4}) {
      attempt(daemon, job, ranks, 1);
      ASSERT_FALSE(daemon.outcome) << schedule << " has ended before it could be taken away";
    }
    attempt(daemon, job, 2, 0);
    EXPECT_EQ(daemon.outcome, RunOutcome::succeeded) << daemon.why;
    EXPECT_THAT(daemon.logged, testing::IsEmpty());
    EXPECT_TRUE(std::is_sorted(daemon.ticks.begin(), daemon.ticks.end()));
    EXPECT_EQ(daemon.summary.at("continued_from_ticks").as_list().size(), 3u);
    SCOPED_TRACE(schedule);
    expect_same(files_of(job), daemon.files);
    daemon.stored.clear();
  }
}

TEST_F(Checkpoints, ARunThatAnotherHasBegunSaysSoInItsLogAndSummary) {
  const Value job = job_with({"pipedream", parameters_from("{stages: 3, microbatches: 50}")});
  const Maker other{"0.0.9", "abc", "b1", "Another CPU"};
  for (const bool same : {true, false}) {
    before_ = {this_maker()};
    if (!same) before_.push_back(other);
    Daemon daemon(path_);
    attempt(daemon, job, 2, 0);
    EXPECT_EQ(daemon.outcome, RunOutcome::succeeded) << daemon.why;
    EXPECT_EQ(daemon.maker, this_maker());
    EXPECT_EQ(daemon.summary.has("note"), !same);
    EXPECT_EQ(daemon.summary.has("earlier_attempts"), !same);
    if (same) {
      EXPECT_THAT(daemon.logged, testing::IsEmpty());
      continue;
    }
    EXPECT_EQ(makers_from(daemon.summary.at("earlier_attempts")), std::vector<Maker>{other});
    EXPECT_THAT(daemon.summary.at("note").as_text(), HasSubstr("on Another CPU"));
    EXPECT_THAT(daemon.logged, testing::ElementsAre(HasSubstr("on Another CPU")));
    expect_same(files_of(job), daemon.files);
    const Value written = value_from_json(daemon.files.at("summary.json"));
    EXPECT_EQ(written.at("note"), daemon.summary.at("note"));
  }
}

TEST_F(Checkpoints, ACheckpointOfAnotherIsUsedAndItsMakerNamed) {
  Value job = job_with({"pipedream", parameters_from("{stages: 3, microbatches: 1500}")});
  job.set("checkpoint", parameters_from("{every: 50}"));
  const Maker other{"0.1.0", "abc", "b1", "Another CPU"};
  Daemon daemon(path_);
  attempt(daemon, job, 2, 1);
  for (const std::string& name : daemon.names_of_newest()) {
    CheckpointPart part = daemon.stored.part(name);
    EXPECT_EQ(part.makers, std::vector<Maker>{this_maker()});
    part.makers = {other};
    daemon.stored.write(name, part.encode());
  }
  attempt(daemon, job, 1, 1);
  ASSERT_FALSE(daemon.outcome) << "it has ended before it could be taken away";
  attempt(daemon, job, 3, 0);
  EXPECT_EQ(daemon.outcome, RunOutcome::succeeded) << daemon.why;
  EXPECT_EQ(makers_from(daemon.summary.at("earlier_attempts")), std::vector<Maker>{other});
  EXPECT_EQ(daemon.summary.at("continued_from_ticks").as_list().size(), 2u);
  expect_same(files_of(job), daemon.files);
}

TEST_F(Checkpoints, OneOfAnotherJobIsRefusedInTheRunsLog) {
  Value job = job_with({"pipedream", parameters_from("{stages: 3, microbatches: 1500}")});
  job.set("checkpoint", parameters_from("{every: 50}"));
  Daemon daemon(path_);
  attempt(daemon, job, 2, 1);
  job.set("seed", 7);
  attempt(daemon, job, 2, 0);
  EXPECT_EQ(daemon.outcome, RunOutcome::succeeded) << daemon.why;
  EXPECT_THAT(daemon.logged, testing::ElementsAre(HasSubstr("it is of another job")));
  EXPECT_FALSE(daemon.summary.has("continued_from_ticks"));
  expect_same(files_of(job), daemon.files);
}

}  // namespace
}  // namespace pipewright
