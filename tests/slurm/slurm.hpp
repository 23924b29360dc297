// A daemon whose pools are jobs of a real Slurm; to be used in a program that cluster.sh runs.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "core/base/text.hpp"
#include "proto/codec/job_file.hpp"
#include "tests/e2e/processes.hpp"

namespace pipewright::e2e {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

inline const fs::path binaries = fs::path(PIPEWRIGHT_BINARY_DIR) / "bin";
inline const std::string scripts = std::string(PIPEWRIGHT_BINARY_DIR) + "/share/pipewright/slurm/";

inline std::string job_text(int stages, int microbatches) {
  return "objective: {quadratic: {generate: {kind: tridiagonal, examples: 600, parameters: 512},"
         " batch_size: 5}}\n"
         "schedule: {pipedream: {stages: " +
         std::to_string(stages) + ", microbatches: " + std::to_string(microbatches) +
         "}}\n"
         "optimizer: {sgd: {learning_rate: 0.001}}\n";
}

/// A daemon without a pool of its own. Slurm's jobs are cancelled at the end of each test.
class Slurm : public testing::Test {
 protected:
  Slurm() {
    std::string name = (fs::path(std::getenv("SLURM_LAB")) / "tmp/test-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }

  void SetUp() override { start_daemon("127.0.0.1"); }
  void start_daemon(const std::string& address, const Words& options = {}) {
    Words words{scripts + "daemon.sh", "--data-dir", data(), "--listen", address, "--port", "0",
                "--log-level",         "error"};
    words.insert(words.end(), options.begin(), options.end());
    daemon = std::make_unique<Running>(words);
    until([&] { return fs::exists(data() + "/daemon.json"); });
  }

  void TearDown() override {
    for (const std::string& job : jobs_) run({"/usr/bin/scancel", job});
    for (const std::string& job : jobs_) {
      until([&] { return !has_processes(job); });
      if (HasFailure()) {
        std::cerr << "Slurm job " << job << ' ' << slurm(job, "%T %r") << ":\n" << log(job);
      }
    }
    daemon->signal(SIGTERM);
    const Outcome ended = daemon->wait();
    if (HasFailure()) std::cerr << ended.err;
  }

  std::string data() const { return (path / "data").string(); }
  Outcome cli(Words words) const {
    words.insert(words.begin(), (binaries / "pipewright").string());
    words.insert(words.end(), {"--data-dir", data()});
    return run(words);
  }

  /// Of a Slurm job: the value of a field of squeue's format.
  static std::string slurm(const std::string& job, const std::string& field) {
    return std::string(trim(
        run({"/usr/bin/squeue", "--noheader", "--states=all", "--jobs", job, "--format", field})
            .out));
  }
  static std::string state(const std::string& job) { return slurm(job, "%T"); }
  static bool is_any_of(const std::string& state, std::initializer_list<const char*> states) {
    return std::find(states.begin(), states.end(), state) != states.end();
  }
  static bool has_processes(const std::string& job) {
    return is_any_of(state(job), {"RUNNING", "COMPLETING", "CONFIGURING"});
  }
  static std::string exit_code(const std::string& job) {
    const std::string all = run({"/usr/bin/scontrol", "show", "job", job}).out;
    const std::size_t at = all.find("ExitCode=");
    return at == std::string::npos ? all
                                   : all.substr(at + 9, all.find_first_of(" \n", at) - at - 9);
  }
  std::string log(const std::string& job) const {
    return read_file(path / ("pipewright-pool-" + job + ".log")) +
           read_file(path / ("pipewright-" + job + ".log"));
  }

  /// `pipewright pool start --slurm`; gives Slurm's number of the job once its pool is attached.
  std::string start_pool(Words options) {
    Words words{"pool", "start", "--slurm", "--timeout", "60", "--json", "--chdir", path.string()};
    words.insert(words.end(), options.begin(), options.end());
    const Outcome outcome = cli(words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    if (outcome.status != 0) return {};
    const Value pools = JobFile::parse(outcome.out, "pools").tree();
    jobs_.push_back(pools.at("pools").as_list().at(0).at("slurm_job").as_text());
    return jobs_.back();
  }
  /// sbatch as it is.
  std::string sbatch(Words words) {
    words.insert(words.begin(), {"/usr/bin/sbatch", "--parsable", "--chdir", path.string()});
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    jobs_.emplace_back(trim(outcome.out));
    return jobs_.back();
  }
  static void until_ended(const std::string& job) {
    until([&] {
      return is_any_of(state(job), {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"});
    });
  }

  std::string job_file(int stages, int microbatches) const {
    const std::string file = (path / "job.yaml").string();
    std::ofstream(file) << job_text(stages, microbatches);
    return file;
  }
  /// Job 1 of the daemon, of two stages; it takes a few seconds.
  void submit_and_wait_until_it_runs() const {
    EXPECT_EQ(cli({"submit", job_file(2, 40000)}).out, "1\n");
    until([&] { return cli({"show", "1"}).out.find("RUNNING") != std::string::npos; });
  }
  /// Job 1 ends well, and has the bytes of a run in one process.
  void expect_same_bytes() const {
    EXPECT_EQ(cli({"wait", "1"}).status, 0);
    EXPECT_EQ(cli({"export", "1", "--out", (path / "slurm").string()}).status, 0);
    expect_same_files(path / "slurm");
  }
  void expect_same_files(const fs::path& folder) const {
    const std::string alone = (path / "alone").string();
    EXPECT_EQ(run({(binaries / "pipewright").string(), "run", (path / "job.yaml").string(), "--out",
                   alone})
                  .status,
              0);
    e2e::expect_same_bytes(
        folder, alone,
        {"objective.csv", "last_stage_loss.csv", "weights.npy", "timeline.csv", "schedule.csv"});
  }

  fs::path path;
  std::unique_ptr<Running> daemon;

 private:
  std::vector<std::string> jobs_;
};

}  // namespace pipewright::e2e
