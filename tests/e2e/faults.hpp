// A daemon with a local pool of four ranks, in which something dies, hangs or is cut off.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "proto/codec/job_file.hpp"
#include "tests/e2e/events.hpp"
#include "tests/e2e/processes.hpp"

namespace pipewright::e2e {

namespace fs = std::filesystem;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

inline const fs::path binaries = fs::path(PIPEWRIGHT_BINARY_DIR) / "bin";

inline std::string job_text(const std::string& schedule, const std::string& more = {}) {
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
    start_daemon();
    until([&] { return is_whole(); });
  }
  virtual void start_daemon(const std::string& lease = "60") {
    daemon = std::make_unique<Running>(std::vector<std::string>{
        (binaries / "pipewrightd").string(), "--data-dir", data(), "--port", "0", "--ranks",
        std::to_string(ranks), "--silence-max", "2", "--lease", lease});
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

  /// What it leaves is what a run in one process leaves.
  void expect_undisturbed_bytes(const std::string& id, const std::string& name) const {
    const std::string here = (path / (name + "-pool")).string();
    const std::string alone = (path / (name + "-alone")).string();
    const std::string file = (path / (name + ".yaml")).string();
    EXPECT_EQ(cli({"wait", id}).status, 0) << cli({"log", id}).out;
    EXPECT_EQ(cli({"export", id, "--out", here}).status, 0);
    EXPECT_EQ(run({(binaries / "pipewright").string(), "run", file, "--out", alone}).status, 0);
    expect_same_bytes(here, alone,
                      {"weights.npy", "objective.csv", "last_stage_loss.csv", "timeline.csv"});
  }
  std::int64_t attempts(const std::string& id) const { return show(id).at("attempt").as_integer(); }

  /// Its events are numbered without a gap, and one of them is its end.
  void expect_one_end(const std::string& id) const {
    EXPECT_EQ(read_events(cli({"watch", id, "--json"}).out).ends, 1);
  }

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

}  // namespace pipewright::e2e
