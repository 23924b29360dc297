// Which files the jobs of whom may name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/train/data_roots.hpp"
#include "core/train/job.hpp"
#include "proto/codec/token.hpp"
#include "tests/service/support.hpp"

namespace pipewright::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// root/ with a file, a link to it, links that lead out, and a neighbour of a similar name.
struct RootsTest : testing::Test {
  TemporaryFolder folder;
  fs::path root = folder.path() / "root";

  RootsTest() {
    for (const char* name : {"root", "root/sub", "rooted", "outside"}) {
      fs::create_directory(folder.path() / name);
    }
    for (const char* name : {"root/a.libsvm", "rooted/a.libsvm", "outside/a.libsvm"}) {
      std::ofstream(folder.path() / name) << "1 1:2\n0 1:1\n";
    }
    fs::create_symlink("a.libsvm", root / "link");
    fs::create_symlink("../outside/a.libsvm", root / "way-out");
    fs::create_symlink("../../outside", root / "sub/out");
    fs::create_symlink(root, folder.path() / "link-to-root");
  }
  std::string fault_of(const DataRoots& roots, const std::string& path) const {
    try {
      roots.check_path((folder.path() / path).string());
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }
  static Value job_of(const fs::path& data) {
    Value job = Value::map();
    set_path(job, "objective.logistic.data.libsvm", data.string());
    set_path(job, "objective.logistic.batch_size", 1);
    set_path(job, "schedule.pipedream.stages", 1);
    set_path(job, "schedule.pipedream.microbatches", 2);
    set_path(job, "optimizer.sgd.learning_rate", 0.1);
    return job;
  }
  static Reply post(const Client& client, const Value& job) {
    return client.send("POST", "/v1/jobs", encode(JobSpecBody{job}, WireFormat::json),
                       {{"Content-Type", "application/json"}});
  }
};

TEST_F(RootsTest, LinksAreFollowedAndNothingOutsideIsRead) {
  const DataRoots roots({root.string()});
  for (const char* path : {"root/a.libsvm", "root/link", "root/not/yet/there", "root/./a.libsvm",
                           "link-to-root/a.libsvm", "root"}) {
    EXPECT_EQ(fault_of(roots, path), "") << path;
  }
  for (const char* path : {"rooted/a.libsvm", "outside/a.libsvm", "root/way-out",
                           "root/sub/out/a.libsvm", "root/sub/out/none", "", "outside/none"}) {
    EXPECT_THAT(fault_of(roots, path),
                AllOf(HasSubstr("is not in a data root"), HasSubstr(root.string())))
        << path;
  }
  EXPECT_THAT(fault_of(roots, "root/../root/a.libsvm"), HasSubstr("has a '..'"));
  EXPECT_THAT(fault_of(DataRoots(std::vector<std::string>{}), "root/a.libsvm"),
              HasSubstr("no data root is configured"));
  EXPECT_EQ(fault_of(DataRoots(), "outside/a.libsvm"), "");
  EXPECT_EQ(fault_of(DataRoots({"/"}), "outside/a.libsvm"), "");
}

TEST_F(RootsTest, EveryPathOfAJobIsLookedAt) {
  const DataRoots roots({root.string()});
  const auto refuses = [&](const Value& job) {
    try {
      roots.check(job);
      return false;
    } catch (const ParamError&) {
      return true;
    }
  };
  const Value good = job_of(root / "a.libsvm");
  EXPECT_FALSE(refuses(good));
  EXPECT_TRUE(refuses(job_of("/etc/hostname")));
  Value job = good;
  job.set("init", Value(Value::Map{{"npy", Value(Value::List{"/etc/hostname"})}}));
  EXPECT_TRUE(refuses(job));
  job = good;
  job.set("schedule", Value(Value::Map{{"file", Value(Value::Map{{"path", "/etc/hostname"}})}}));
  EXPECT_TRUE(refuses(job));
  job = good;
  job.set("sweep", Value(Value::Map{{"objective.logistic.data.libsvm",
                                     Value(Value::List{(root / "a.libsvm").string(), "/etc/x"})}}));
  EXPECT_TRUE(refuses(job));
}

TEST_F(RootsTest, TheOwnerAloneReadsWhatHeCanAndWithOthersNobodyDoes) {
  RunningDaemon daemon({.data_dir = folder.path() / "data"});
  const Client admin = daemon.client();
  const Value job = job_of(folder.path() / "outside/a.libsvm");
  EXPECT_EQ(post(admin, job).status, 201);
  const Reply made =
      admin.send("POST", "/v1/tokens", encode(TokenRequest{"alice", "submit", 0}, WireFormat::json),
                 {{"Content-Type", "application/json"}});
  const Client alice(admin.port(), decode<TokenReply>(made.body, WireFormat::json).token);
  for (const Client* client : {&admin, &alice}) {
    const Reply refused = post(*client, job);
    EXPECT_EQ(refused.status, 400);
    EXPECT_THAT(refused.body, HasSubstr("--data-root"));
  }
  EXPECT_EQ(post(alice, small_job()).status, 201) << "generated data needs no root";
}

TEST_F(RootsTest, ADaemonWithRootsTellsThemToItsPools) {
  RunningDaemon daemon({.data_dir = folder.path() / "data", .data_roots = {root.string()}});
  const Client client = daemon.client();
  const Reply refused = post(client, job_of(root / "way-out"));
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body,
              AllOf(HasSubstr("libsvm"), HasSubstr(root.string()), Not(HasSubstr("outside"))));
  std::ofstream(folder.path() / "outside/secret") << "the secret";
  Value schedule = small_job();
  schedule.set(
      "schedule",
      Value(Value::Map{
          {"file", Value(Value::Map{{"path", (folder.path() / "outside/secret").string()}})}}));
  const Reply unread = post(client, schedule);
  EXPECT_EQ(unread.status, 400);
  EXPECT_THAT(unread.body, AllOf(HasSubstr("is not in a data root"), Not(HasSubstr("the secret"))));
  EXPECT_EQ(post(client, job_of(root / "link")).status, 201);
  FakePool pool(client);
  EXPECT_THAT(pool.expect<StartRun>().data_roots, testing::ElementsAre(root.string()));
}

TEST_F(RootsTest, ARootThatIsNoFolderIsRefused) {
  EXPECT_THROW(RunningDaemon({.data_dir = folder.path() / "data",
                              .data_roots = {(root / "a.libsvm").string()}}),
               ConfigError);
}

}  // namespace
}  // namespace pipewright::test
