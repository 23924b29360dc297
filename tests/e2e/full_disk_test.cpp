// A store whose disk is full, or may not be written: a file system of a few megabytes that only
// this program and what it starts can see.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>

#include "core/base/text.hpp"
#include "proto/codec/job_file.hpp"
#include "tests/e2e/processes.hpp"

namespace pipewright::e2e {
namespace {

namespace fs = std::filesystem;
using testing::AnyOf;
using testing::HasSubstr;

const fs::path binaries = fs::path(PIPEWRIGHT_BINARY_DIR) / "bin";

/// Mounts of this process from here on are its own. Empty, or why there can be none.
std::string own_mounts() {
  static const std::string fault = []() -> std::string {
    if (::unshare(CLONE_NEWNS) != 0) {
      return std::string("only root can have mounts of its own: ") + std::strerror(errno);
    }
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
      return std::string("mounts cannot be made private: ") + std::strerror(errno);
    }
    return {};
  }();
  return fault;
}

/// All ticks of the job have been done.
bool done(const std::string& json) {
  const Value progress = JobFile::parse(json, "show").tree().at("progress");
  const std::string all = progress.at("ticks_total").as_text();
  return all != "0" && all == progress.at("ticks_done").as_text();
}

class FullDisk : public testing::Test {
 protected:
  FullDisk() {
    std::string name = (fs::temp_directory_path() / "pipewright-e2e-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~FullDisk() override {
    daemon.reset();
    if (mounted) ::umount2(disk().c_str(), MNT_DETACH);
    fs::remove_all(path);
  }

  void SetUp() override {
    if (const std::string fault = own_mounts(); !fault.empty()) GTEST_SKIP() << fault;
    fs::create_directory(disk());
    mounted = ::mount("tmpfs", disk().c_str(), "tmpfs", 0, "size=32m") == 0;
    if (!mounted) GTEST_SKIP() << "no file system can be mounted: " << std::strerror(errno);
  }

  fs::path disk() const { return path / "disk"; }
  std::string data() const { return (disk() / "data").string(); }
  std::string job(const std::string& name, int microbatches) const {
    const fs::path file = path / (name + ".yaml");
    std::ofstream(file) << "name: " << name << "\n"
                        << "objective: {quadratic: {generate: {kind: random, examples: 600,"
                        << " parameters: 1024}, batch_size: 200}}\n"
                        << "schedule: {pipedream: {stages: 2, microbatches: " << microbatches
                        << "}}\n"
                        << "optimizer: {sgd: {learning_rate: 0.001}}\n"
                        << "observe: {objective: {every_ticks: 50}}\n";
    return file.string();
  }

  std::vector<std::string> daemon_words() const {
    return {(binaries / "pipewrightd").string(),
            "--data-dir",
            data(),
            "--port",
            "0",
            "--ranks",
            "2",
            "--log-level",
            "error"};
  }
  void start() {
    daemon = std::make_unique<Running>(daemon_words());
    until([&] { return fs::exists(data() + "/daemon.json"); });
    until([&] { return cli({"pools"}).out.find("local") != std::string::npos; });
  }
  int stop() {
    daemon->signal(SIGTERM);
    const int status = daemon->wait().status;
    daemon.reset();
    return status;
  }

  Outcome cli(std::vector<std::string> words) const {
    words.insert(words.begin(), (binaries / "pipewright").string());
    words.insert(words.end(), {"--data-dir", data()});
    return run(words);
  }

  /// Nothing more can be written when this returns.
  void fill() const {
    std::ofstream filler(disk() / "filler", std::ios::binary | std::ios::app);
    for (const std::size_t piece : {std::size_t{65536}, std::size_t{1}}) {
      const std::string zeros(piece, '\0');
      filler.clear();
      while (filler.write(zeros.data(), static_cast<std::streamsize>(piece)).flush()) {
      }
    }
  }

  fs::path path;
  bool mounted = false;
  std::unique_ptr<Running> daemon;
};

TEST_F(FullDisk, RefusesJobsWithTheReasonKeepsWhatItHasAndGoesOnWhenThereIsSpace) {
  if (!fs::exists(binaries / "pipewright-worker")) {
    GTEST_SKIP() << "there is no pipewright-worker in " << binaries << ": built without MPI";
  }
  start();
  const std::string long_job = job("long", 15'000);
  ASSERT_EQ(cli({"submit", long_job}).out, "1\n");
  until([&] { return cli({"show", "1"}).out.find("RUNNING") != std::string::npos; });

  // SQLite may have room left in files that it has already; that room ends.
  const std::string short_job = job("short", 20);
  std::vector<std::string> accepted;
  Outcome refused;
  until([&] {
    fill();
    refused = cli({"submit", short_job});
    if (refused.status == 0) accepted.emplace_back(trim(refused.out));
    return refused.status != 0;
  });
  EXPECT_THAT(refused.err, AnyOf(HasSubstr("disk is full"), HasSubstr("No space left")));
  EXPECT_EQ(refused.out, "");
  // Reading goes on, and so does the run; at its end its files wait for space.
  EXPECT_EQ(cli({"list"}).status, 0);
  until([&] {
    fill();
    return done(cli({"show", "1", "--json"}).out);
  });
  fill();
  EXPECT_THAT(cli({"show", "1"}).out, HasSubstr("RUNNING"));

  fs::remove(disk() / "filler");
  until([&] {
    const Outcome taken = cli({"submit", short_job});
    if (taken.status == 0) accepted.emplace_back(trim(taken.out));
    return taken.status == 0;
  });
  EXPECT_EQ(cli({"wait", "1"}).status, 0) << cli({"show", "1"}).out << cli({"log", "1"}).out;
  for (const std::string& id : accepted) EXPECT_EQ(cli({"wait", id}).status, 0) << "job " << id;

  // What the run left is what it leaves on a disk with room, also after the next start.
  EXPECT_EQ(stop(), 0);
  fs::remove(data() + "/daemon.json");
  start();
  const std::string alone = (path / "alone").string();
  EXPECT_EQ(cli({"export", "1", "--out", (path / "service").string()}).status, 0);
  EXPECT_EQ(run({(binaries / "pipewright").string(), "run", long_job, "--out", alone}).status, 0);
  expect_same_bytes(path / "service", alone,
                    {"objective.csv", "last_stage_loss.csv", "weights.npy"});
  EXPECT_EQ(stop(), 0);
}

TEST_F(FullDisk, DoesNotStartOnAFullOneAndSaysWhy) {
  fill();
  Running started(daemon_words());
  const Outcome outcome = started.wait();
  EXPECT_NE(outcome.status, 0);
  EXPECT_THAT(outcome.err, HasSubstr(data()));
  EXPECT_THAT(outcome.err, AnyOf(HasSubstr("full"), HasSubstr("No space left")));
}

TEST_F(FullDisk, DoesNotStartOnOneThatMayNotBeWrittenAndLeavesItAsItWas) {
  if (!fs::exists(binaries / "pipewright-worker")) {
    GTEST_SKIP() << "there is no pipewright-worker in " << binaries << ": built without MPI";
  }
  start();
  ASSERT_EQ(cli({"submit", job("short", 20)}).out, "1\n");
  ASSERT_EQ(cli({"wait", "1"}).status, 0);
  EXPECT_EQ(stop(), 0);
  ASSERT_EQ(::mount("none", disk().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr), 0)
      << std::strerror(errno);
  Running started(daemon_words());
  const Outcome outcome = started.wait();
  EXPECT_NE(outcome.status, 0);
  EXPECT_THAT(outcome.err, HasSubstr(data()));
  EXPECT_THAT(outcome.err, AnyOf(HasSubstr("Read-only file system"), HasSubstr("readonly")));
  ASSERT_EQ(::mount("none", disk().c_str(), nullptr, MS_REMOUNT, "size=32m"), 0)
      << std::strerror(errno);
  fs::remove(data() + "/daemon.json");
  start();
  EXPECT_THAT(cli({"show", "1"}).out, HasSubstr("SUCCEEDED"));
  EXPECT_EQ(stop(), 0);
}

}  // namespace
}  // namespace pipewright::e2e
