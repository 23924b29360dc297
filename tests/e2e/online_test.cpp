// The real programs together: pipewright, pipewrightd and a pool of pipewright-worker ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "proto/codec/job_file.hpp"
#include "tests/e2e/processes.hpp"

namespace pipewright::e2e {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

constexpr int succeeded = 0, failed = 1, user_error = 2, cancelled = 3;

const fs::path binaries = fs::path(PIPEWRIGHT_BINARY_DIR) / "bin";

std::string trimmed(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

Value json(const std::string& text) {
  return JobFile::parse(text, "output").tree();
}

std::vector<Value> json_lines(const std::string& text) {
  std::vector<Value> values;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) values.push_back(json(line));
  return values;
}

/// A job of two stages with so many microbatches.
std::string job_text(int microbatches, int examples = 40, int parameters = 16) {
  return "name: a test\n"
         "objective:\n"
         "  quadratic: {generate: {kind: tridiagonal, examples: " +
         std::to_string(examples) + ", parameters: " + std::to_string(parameters) +
         ", seed: 0}, batch_size: 5}\n"
         "schedule:\n"
         "  pipedream: {stages: 2, microbatches: " +
         std::to_string(microbatches) +
         "}\n"
         "optimizer: {sgd: {learning_rate: 0.001}}\n";
}
/// Ends at once; takes a few seconds; takes far longer than any test.
std::string tiny_job() {
  return job_text(8);
}
std::string short_job() {
  return job_text(100000, 600, 512);
}
std::string endless_job() {
  return job_text(3000000, 600, 512);
}

class Folder : public testing::Test {
 protected:
  Folder() {
    std::string name = (fs::temp_directory_path() / "pipewright-e2e-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~Folder() override { fs::remove_all(path); }

  std::string data() const { return (path / "data").string(); }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(path / name) << text;
    return (path / name).string();
  }
  std::vector<std::string> command(std::vector<std::string> words) const {
    words.insert(words.begin(), (binaries / "pipewright").string());
    words.insert(words.end(), {"--data-dir", data()});
    return words;
  }
  Outcome cli(std::vector<std::string> words) const { return run(command(std::move(words))); }

  fs::path path;
};

class Cluster : public Folder {
 protected:
  void SetUp() override {
    if (!fs::exists(binaries / "pipewright-worker")) {
      GTEST_SKIP() << "there is no pipewright-worker in " << binaries << ": built without MPI";
    }
    up();
  }

  void TearDown() override {
    if (!fs::exists(data())) return;
    note_processes();
    cli({"down"});
    for (const pid_t pid : processes_) {
      if (wait_gone(pid)) continue;
      ADD_FAILURE() << "process " << pid << " outlives `down`";
      ::kill(pid, SIGKILL);
    }
    if (HasFailure()) {
      std::cerr << read_file(data() + "/daemon.log") << read_file(data() + "/pool-local.log");
    }
  }

  Outcome up() {
    const Outcome outcome = cli({"up", "--ranks", "2", "--port", "0"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    note_processes();
    return outcome;
  }

  pid_t daemon() const {
    const std::string record = read_file(data() + "/daemon.json");
    return record.empty() ? 0 : static_cast<pid_t>(json(record).at("pid").as_integer());
  }
  std::vector<pid_t> workers() const { return descendants(daemon(), "pipewright-work"); }

  void note_processes() {
    const pid_t pid = daemon();
    if (pid <= 0 || !alive(pid)) return;
    processes_.push_back(pid);
    for (const pid_t below : descendants(pid)) processes_.push_back(below);
  }

  std::string submit(const std::string& text) const {
    const Outcome outcome = cli({"submit", file("job.yaml", text)});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return trimmed(outcome.out);
  }
  Value show(const std::string& id) const { return json(cli({"show", id, "--json"}).out); }
  std::string state(const std::string& id) const { return show(id).at("state").as_text(); }

  /// Follows a job until it runs.
  void wait_until_running(const std::string& id) const {
    Running watch(command({"watch", id}));
    ASSERT_TRUE(watch.read_until("objective")) << "no point of job " << id << " came";
  }

 private:
  std::vector<pid_t> processes_;
};

TEST_F(Cluster, IsUpOnceAndDownOnce) {
  const Outcome again = up();
  EXPECT_THAT(again.out, StartsWith("already up: http://127.0.0.1:"));
  EXPECT_THAT(cli({"up", "--ranks", "3"}).err, HasSubstr("it has 2 ranks, not 3"));
  const Value pools = json(cli({"pools", "--json"}).out);
  EXPECT_EQ(pools.at("pools").as_list().front().at("state").as_text(), "attached");
  const pid_t pid = daemon();
  EXPECT_EQ(cli({"down"}).out, "down\n");
  EXPECT_FALSE(alive(pid));
  const Outcome twice = cli({"down"});
  EXPECT_EQ(twice.status, 0);
  EXPECT_EQ(twice.out, "no daemon was running\n");
}

TEST_F(Cluster, RefusesAPortInUse) {
  const std::string url = json(cli({"up", "--json"}).out).at("url").as_text();
  const std::string port = url.substr(url.rfind(':') + 1);
  const Outcome second = run({(binaries / "pipewright").string(), "up", "--port", port,
                              "--data-dir", (path / "other").string()});
  EXPECT_EQ(second.status, user_error);
  EXPECT_THAT(second.err,
              HasSubstr("port " + port +
                        " of 127.0.0.1 is in use by a pipewright daemon with another data folder"));
}

TEST_F(Cluster, FollowsAJobToItsEndAndExportsIt) {
  const Outcome watched = cli({"submit", file("job.yaml", tiny_job()), "--watch"});
  EXPECT_EQ(watched.status, succeeded) << watched.err;
  EXPECT_EQ(watched.out, "1\n");
  EXPECT_THAT(watched.err, HasSubstr("job 1: RUNNING\njob 1: tick 0  updates 0  objective "));
  EXPECT_THAT(watched.err, HasSubstr("job 1: SUCCEEDED\n"));
  EXPECT_THAT(watched.err, HasSubstr("makespan"));

  const Outcome again = cli({"watch", "1"});
  EXPECT_THAT(watched.err, HasSubstr(again.out));  // history reads as it read live

  EXPECT_EQ(cli({"wait", "1"}).status, succeeded);
  EXPECT_THAT(cli({"list"}).out, HasSubstr("SUCCEEDED"));
  const Value job = show("1");
  EXPECT_EQ(job.at("state").as_text(), "JOB_STATE_SUCCEEDED");
  EXPECT_THAT(cli({"show", "1"}).out, HasSubstr("schedule.pipedream.microbatches"));
  EXPECT_THAT(cli({"log", "1"}).out, HasSubstr("SUCCEEDED"));

  const Outcome exported = cli({"export", "1", "--out", (path / "out").string()});
  EXPECT_EQ(exported.status, succeeded) << exported.err;
  EXPECT_THAT(read_file(path / "out" / "objective.csv"), StartsWith("tick,updates,value\n0,0,"));
  for (const char* name :
       {"last_stage_loss.csv", "weights.npy", "schedule.csv", "timeline.csv", "summary.json"}) {
    EXPECT_TRUE(fs::exists(path / "out" / name)) << name;
    EXPECT_THAT(exported.out, HasSubstr(name));
  }
}

TEST_F(Cluster, GivesEveryFrameAsJson) {
  const Outcome watched = cli({"submit", file("job.yaml", tiny_job()), "--watch", "--json"});
  EXPECT_EQ(watched.status, succeeded) << watched.err;
  const std::vector<Value> lines = json_lines(watched.out);
  ASSERT_GE(lines.size(), 3U);
  EXPECT_EQ(lines.front().at("id").as_integer(), 1);
  EXPECT_EQ(lines.back().at("ended").at("state").as_text(), "JOB_STATE_SUCCEEDED");
}

TEST_F(Cluster, TakesSettingsFromTheCommandLine) {
  const Outcome outcome = cli({"submit", file("job.yaml", tiny_job()), "--set", "seed=5", "--set",
                               "schedule.pipedream.microbatches=6"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Value spec = show(trimmed(outcome.out)).at("spec");
  EXPECT_EQ(spec.at("schedule").at("parameters").at("microbatches").as_integer(), 6);
}

TEST_F(Cluster, CancelsARunningJob) {
  const std::string id = submit(endless_job());
  wait_until_running(id);
  EXPECT_EQ(cli({"cancel", id}).status, 0);
  EXPECT_EQ(cli({"wait", id}).status, cancelled);
  const Outcome twice = cli({"cancel", id});
  EXPECT_EQ(twice.status, failed);
  EXPECT_THAT(twice.err, HasSubstr("has ended"));
  EXPECT_EQ(cli({"wait", submit(tiny_job())}).status, succeeded);
}

/// In real time: it would take more than an hour.
std::string real_job() {
  return "objective: {quadratic: {generate: {kind: random, examples: 40, parameters: 8},"
         " batch_size: 4}}\n"
         "schedule: {pipedream: {stages: 2, microbatches: 200000, order: online}}\n"
         "optimizer: {sgd: {learning_rate: 0.01}}\n"
         "cost: {forward: 5ms, backward: 5ms}\n"
         "link: {latency: 5ms}\n"
         "clock: real\n"
         "observe: {objective: {every_updates: 4}}\n";
}

TEST_F(Cluster, CancelsARunInRealTime) {
  const std::string id = submit(real_job());
  wait_until_running(id);
  EXPECT_EQ(cli({"cancel", id}).status, 0);
  EXPECT_EQ(cli({"wait", id}).status, cancelled);
  EXPECT_EQ(cli({"wait", submit(tiny_job())}).status, succeeded);
}

TEST_F(Cluster, QueuesARunInRealTimeAgainWhenARankIsLost) {
  const std::string id = submit(real_job());
  wait_until_running(id);
  ::kill(workers().back(), SIGKILL);
  Running watch(command({"watch", id}));
  ASSERT_TRUE(watch.read_until("attempt 1 was lost"));
  EXPECT_EQ(cli({"cancel", id}).status, 0);
  EXPECT_EQ(cli({"wait", id}).status, cancelled);
  EXPECT_EQ(cli({"wait", submit(tiny_job())}).status, succeeded);
}

TEST_F(Cluster, PlotsJobsOfTheDaemonAsTheirFoldersArePlotted) {
  if (!on_path("gnuplot"))
    GTEST_SKIP() << "gnuplot is not here (package gnuplot-nox): this test needs it";
  const std::string id = submit(tiny_job());
  ASSERT_EQ(cli({"wait", id}).status, succeeded);
  const std::string from_job = (path / "job.svg").string();
  const Outcome plotted = cli({"plot", id, "--label", "curve", "--out", from_job});
  ASSERT_EQ(plotted.status, 0) << plotted.err;
  const std::string folder = (path / "out").string();
  ASSERT_EQ(cli({"export", id, "--out", folder}).status, 0);
  const std::string from_folder = (path / "folder.svg").string();
  ASSERT_EQ(cli({"plot", folder, "--label", "curve", "--out", from_folder}).status, 0);
  EXPECT_THAT(read_file(from_job), StartsWith("<?xml"));
  EXPECT_EQ(read_file(from_job), read_file(from_folder));
  EXPECT_EQ(cli({"plot", "99", "--out", (path / "none.svg").string()}).status, user_error);
}

TEST_F(Cluster, CancelsAJobThatWaits) {
  const std::string running = submit(endless_job()), waiting = submit(tiny_job());
  EXPECT_EQ(cli({"cancel", waiting}).status, 0);
  EXPECT_EQ(cli({"wait", waiting}).status, cancelled);
  EXPECT_EQ(cli({"cancel", running}).status, 0);
  EXPECT_EQ(cli({"wait", running}).status, cancelled);
}

TEST_F(Cluster, StopsWatchingOnCtrlCAndLeavesTheJob) {
  const std::string id = submit(endless_job());
  Running watch(command({"watch", id}));
  ASSERT_TRUE(watch.read_until("objective"));
  watch.signal(SIGINT);
  const Outcome outcome = watch.wait();
  EXPECT_EQ(outcome.status, 130);
  EXPECT_THAT(outcome.err, HasSubstr("the job goes on"));
  EXPECT_EQ(state(id), "JOB_STATE_RUNNING");
  cli({"cancel", id});
}

TEST_F(Cluster, SurvivesTheLossOfARank) {
  const std::string id = submit(short_job());
  wait_until_running(id);
  const std::vector<pid_t> ranks = workers();
  ASSERT_EQ(ranks.size(), 2U);
  const pid_t before = daemon();
  ::kill(ranks.back(), SIGKILL);
  EXPECT_EQ(cli({"wait", id}).status, succeeded);  // started again on a new pool
  EXPECT_GE(show(id).at("attempt").as_integer(), 2);
  EXPECT_EQ(daemon(), before);
  EXPECT_TRUE(alive(before));
  EXPECT_EQ(cli({"wait", submit(tiny_job())}).status, succeeded);
}

TEST_F(Cluster, KeepsAcceptedJobsWhenTheDaemonIsKilled) {
  const std::vector<std::string> ids{submit(short_job()), submit(tiny_job()), submit(tiny_job())};
  // A client that follows finds the daemon again, though its port is another one then.
  Running waiting(command({"watch", ids[0], ids[1], ids[2]}));
  ASSERT_TRUE(waiting.read_until("objective"));
  const pid_t killed = daemon();
  ::kill(killed, SIGKILL);
  ASSERT_TRUE(wait_gone(killed));
  EXPECT_EQ(cli({"list"}).status, failed);
  up();
  const Outcome outcome = waiting.wait();
  EXPECT_EQ(outcome.status, succeeded) << outcome.err;
  for (const std::string& id : ids) EXPECT_EQ(state(id), "JOB_STATE_SUCCEEDED");
}

TEST_F(Cluster, RunsTwoHundredTinyJobsInOrder) {
  constexpr std::size_t count = 200;
  const std::string path = file("tiny.yaml", tiny_job());
  std::vector<std::string> wait{"wait"};
  for (std::size_t i = 0; i < count; ++i) {
    const Outcome outcome = cli({"submit", path});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    wait.push_back(trimmed(outcome.out));
  }
  const Outcome waited = cli(wait);
  EXPECT_EQ(waited.status, succeeded) << waited.err;
  std::vector<Value> jobs = json_lines(cli({"list", "--limit", "1000", "--json"}).out);
  ASSERT_EQ(jobs.size(), count);
  std::reverse(jobs.begin(), jobs.end());
  const auto started = [](const Value& job) {
    const Value& at = job.at("started_unix_ms");  // protobuf's JSON writes 64 bits as text
    return at.is_text() ? std::stoll(at.as_text()) : at.as_integer();
  };
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(jobs[i].at("id").as_integer(), static_cast<std::int64_t>(i + 1));
    EXPECT_EQ(jobs[i].at("state").as_text(), "JOB_STATE_SUCCEEDED");
    if (i > 0) {
      EXPECT_LE(started(jobs[i - 1]), started(jobs[i]));
    }
  }
}

/// Six runs: three learning rates under two seeds.
std::string sweep_job(int microbatches = 40) {
  return job_text(microbatches) +
         "sweep: {optimizer.sgd.learning_rate: [0.001, 0.002, 0.004]}\n"
         "repeats: 2\n";
}

TEST_F(Cluster, GivesASweepTheSameFilesAndTableAsRunDoes) {
  const std::string job = file("sweep.yaml", sweep_job());
  const Outcome submitted = cli({"submit", job, "--watch"});
  ASSERT_EQ(submitted.status, succeeded) << submitted.err;
  const std::string id = trimmed(submitted.out);
  EXPECT_THAT(submitted.err, HasSubstr("6 of 6 runs have ended"));
  const fs::path online = path / "online", offline = path / "offline";
  ASSERT_EQ(cli({"export", id, "--out", online.string()}).status, 0);
  const Outcome alone =
      run({(binaries / "pipewright").string(), "run", job, "--out", offline.string()});
  ASSERT_EQ(alone.status, 0) << alone.err;
  for (int n = 0; n < 6; ++n) {
    const std::string folder = "run-000" + std::to_string(n);
    for (const char* name :
         {"objective.csv", "last_stage_loss.csv", "weights.npy", "schedule.csv", "timeline.csv"}) {
      const std::string here = read_file(offline / folder / name);
      EXPECT_FALSE(here.empty()) << folder << name;
      EXPECT_TRUE(read_file(online / folder / name) == here) << folder << name;
    }
  }
  for (const char* name : {"runs.csv", "band.csv"}) {
    const std::string here = read_file(offline / name);
    EXPECT_FALSE(here.empty()) << name;
    EXPECT_EQ(read_file(online / name), here) << name;
  }
  const Value of_daemon = json(json(cli({"show", id, "--json"}).out).at("summary_json").as_text());
  const Value of_run = json(read_file(offline / "summary.json"));
  const Value exported = json(read_file(online / "summary.json"));
  for (const char* key : {"runs", "groups", "best", "warnings"}) {
    EXPECT_EQ(of_daemon.at(key), of_run.at(key)) << key;
    EXPECT_EQ(exported.at(key), of_run.at(key)) << key;
  }
  const Outcome shown = cli({"show", id});
  EXPECT_THAT(shown.out, HasSubstr("widen the grid"));
  EXPECT_THAT(cli({"list"}).out, HasSubstr("6/6 runs"));
}

TEST_F(Cluster, GivesASweepOverAllRanksTheSameNumbers) {
  const std::string job = file("sweep.yaml", sweep_job());
  std::vector<fs::path> folders;
  for (const char* ranks : {"ranks=1", "ranks=2"}) {
    const std::string id = trimmed(cli({"submit", job, "--set", ranks}).out);
    EXPECT_EQ(cli({"wait", id}).status, succeeded);
    folders.push_back(path / ranks);
    ASSERT_EQ(cli({"export", id, "--out", folders.back().string()}).status, 0);
  }
  for (int n = 0; n < 6; ++n) {
    for (const char* name : {"objective.csv", "weights.npy", "timeline.csv"}) {
      const fs::path one = fs::path("run-000" + std::to_string(n)) / name;
      EXPECT_FALSE(read_file(folders[0] / one).empty()) << one;
      EXPECT_TRUE(read_file(folders[0] / one) == read_file(folders[1] / one)) << one;
    }
  }
}

TEST_F(Cluster, CancelsASweep) {
  const std::string id = submit(endless_job() + "repeats: 50\n");
  while (state(id) != "JOB_STATE_RUNNING") ASSERT_NE(state(id), "JOB_STATE_FAILED");
  EXPECT_EQ(cli({"cancel", id}).status, 0);
  const Outcome waited = cli({"wait", id});
  EXPECT_EQ(waited.status, cancelled);
  EXPECT_THAT(waited.err, HasSubstr("0 of 50 runs had ended"));
  EXPECT_EQ(cli({"wait", submit(tiny_job())}).status, succeeded) << "the ranks are free again";
}

TEST_F(Cluster, EveryRunOfASweepEndsOnceAlthoughTheDaemonIsKilled) {
  const std::string id = submit(job_text(2000) + "repeats: 60\n");
  const auto ended = [&] {
    const Value* runs = find_path(show(id), "progress.runs.succeeded");
    return runs == nullptr ? 0 : runs->as_integer();
  };
  while (ended() < 5) ASSERT_NE(state(id), "JOB_STATE_FAILED");
  const pid_t killed = daemon();
  ::kill(killed, SIGKILL);
  ASSERT_TRUE(wait_gone(killed));
  up();
  EXPECT_EQ(cli({"wait", id}).status, succeeded);
  EXPECT_EQ(ended(), 60);
  std::vector<int> ends(60);
  Running watch(command({"watch", id, "--json"}));
  for (const Value& frame : json_lines(watch.wait().out)) {
    const Value* events = find_path(frame, "events.events");
    if (events == nullptr) continue;
    for (const Value& event : events->as_list()) {
      const Value* change = find_path(event, "run_state.state");
      if (change != nullptr && change->as_text() == "JOB_STATE_SUCCEEDED") {
        ++ends.at(static_cast<std::size_t>(event.at("run").as_integer()));
      }
    }
  }
  EXPECT_EQ(std::count(ends.begin(), ends.end(), 1), 60);
}

TEST_F(Cluster, SaysThatThereIsNoSuchJob) {
  for (const char* verb : {"show", "cancel", "wait", "watch", "log"}) {
    const Outcome outcome = cli({verb, "99"});
    EXPECT_EQ(outcome.status, user_error) << verb;
    EXPECT_THAT(outcome.err, HasSubstr("99")) << verb;
    EXPECT_EQ(outcome.out, "") << verb;
  }
}

TEST_F(Cluster, SaysThatTheTokenIsWrong) {
  const std::string url = json(cli({"up", "--json"}).out).at("url").as_text();
  const Outcome outcome = run({(binaries / "pipewright").string(), "list", "--url", url,
                               "--token-file", file("token", "wrong")});
  EXPECT_EQ(outcome.status, failed);
  EXPECT_THAT(outcome.err, HasSubstr("does not accept the token"));
}

using Malformed = Folder;

TEST_F(Malformed, JobFilesAreRefusedWithFileAndLine) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {tiny_job() + "objektive: 3\n", ":7:"},
      {tiny_job() + "seed: many\n", ":7:"},
      {tiny_job() + "seed: [1, 2\n", ":"},
      {"name: only\n", "objective"},
  };
  for (const auto& [text, where] : cases) {
    const std::string path = file("bad.yaml", text);
    const Outcome outcome = cli({"submit", path});
    EXPECT_EQ(outcome.status, user_error) << text;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(path));
    EXPECT_THAT(outcome.err, HasSubstr(where));
  }
  EXPECT_EQ(cli({"submit", (path / "none.yaml").string()}).status, user_error);
}

TEST_F(Malformed, CommandLinesAreRefused) {
  EXPECT_EQ(cli({"show", "seven"}).status, user_error);
  EXPECT_EQ(cli({"list", "--state", "ASLEEP"}).status, user_error);
  EXPECT_EQ(cli({"up", "--ranks", "0"}).status, user_error);
  EXPECT_EQ(cli({"fly"}).status, user_error);
}

TEST_F(Malformed, ACommandWithoutADaemonSaysHowToStartOne) {
  const Outcome outcome = cli({"list"});
  EXPECT_EQ(outcome.status, failed);
  EXPECT_THAT(outcome.err, HasSubstr("start one with `pipewright up --data-dir " + data() + "`"));
}

TEST(Help, EveryOnlineCommandHasAnExample) {
  for (const char* name : {"up", "down", "submit", "watch", "list", "show", "cancel", "wait", "log",
                           "export", "pools"}) {
    const Outcome outcome = run({(binaries / "pipewright").string(), name, "--help"});
    EXPECT_EQ(outcome.status, 0) << name;
    EXPECT_THAT(outcome.out, HasSubstr(std::string("Example:\n  pipewright ") + name)) << name;
    EXPECT_THAT(outcome.out, HasSubstr("--json")) << name;
  }
}

}  // namespace
}  // namespace pipewright::e2e
