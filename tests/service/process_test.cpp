// The real pipewrightd: what survives kill -9, how it ends, what it refuses to start with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/service/daemon_process.hpp"

namespace pipewright::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(DaemonProcess, AcceptedJobsSurviveAKillAndRunAfterARestart) {
  auto process = launch();
  {
    const Client client = client_of(*process);
    for (int i = 0; i < 3; ++i) submit(client);
    FakePool pool(client, "first", 1);
    const StartRun start = pool.expect<StartRun>();
    pool.send(RunStarted{start.run});
    pool.send_points(start.run, 0, 40);
    EXPECT_EQ(pool.expect<PointsStored>().next_index, 40u);
    EXPECT_EQ(process->kill(SIGKILL), -SIGKILL);
    EXPECT_FALSE(pool.receive());
  }
  process = launch({"--port", "0", "--lease", "0"});  // that pool does not come back
  const Client client = client_of(*process);
  EXPECT_THAT(show(client, 1).message, HasSubstr("the daemon was restarted"));
  EXPECT_EQ(points_of(events(client, 1)).size(), 40u) << "acknowledged points are there";
  FakePool pool(client, "second", 1);
  for (std::uint32_t id = 1; id <= 3; ++id) {
    const StartRun start = pool.expect<StartRun>();
    EXPECT_EQ(start.run, (RunId{id, 0, id == 1 ? 2u : 1u})) << "in their order";
    pool.run(start, 60);
    while (!std::holds_alternative<RunEndStored>(pool.receive().value())) {
    }
  }
  for (std::uint32_t id = 1; id <= 3; ++id) {
    EXPECT_EQ(show(client, id).state, JobState::succeeded);
    const EventList all = events(client, id, "?limit=10000");
    expect_numbered(all.events, 1);
    EXPECT_EQ(points_of(all).size(), 60u);
  }
  EXPECT_EQ(submit(client), 4u) << "ids are not used twice";
  EXPECT_EQ(process->kill(SIGTERM), 0);
}

TEST_F(DaemonProcess, SigtermEndsItInOrder) {
  auto process = launch();
  const Client client = client_of(*process);
  submit(client);
  struct stat status {};
  ASSERT_EQ(::stat(data.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  Watcher watcher(client, 1);
  ASSERT_TRUE(watcher.until<LiveFromHere>());
  ::kill(process->pid(), SIGTERM);
  EXPECT_EQ(watcher.until<Closing>()->reason, "terminated");
  EXPECT_EQ(process->wait(), 0);
  EXPECT_FALSE(std::filesystem::exists(data / "daemon.json"));
  EXPECT_FALSE(std::filesystem::exists(data / "pipewright.db-wal")) << "the store was closed";
}

TEST_F(DaemonProcess, TheLogNeverHoldsTheToken) {
  auto process = launch({"--port", "0", "--log-level", "debug"});
  const Client client = client_of(*process);
  submit(client);
  const Headers offer{{"Sec-WebSocket-Protocol", "pipewright.v1, bearer." + client.token()}};
  WebSocketClient stream(client.port(), "/v1/jobs/1/stream", offer);
  EXPECT_TRUE(stream.receive());
  EXPECT_EQ(process->kill(SIGINT), 0);
  EXPECT_THAT(read_file(log), HasSubstr("job accepted"));
  EXPECT_EQ(read_file(log).find(client.token()), std::string::npos);
}

TEST_F(DaemonProcess, TwoDaemonsNeverShareADataFolder) {
  auto first = launch();
  client_of(*first);
  EXPECT_EQ(launch()->wait(), 2);
  EXPECT_THAT(read_file(log), HasSubstr("(pid " + std::to_string(first->pid()) + ")"));
  EXPECT_TRUE(first->running());
  client_of(*first);
}

TEST_F(DaemonProcess, APortInUseIsAClearError) {
  auto first = launch();
  const std::string port = std::to_string(client_of(*first).port());
  data = folder.path() / "other";
  EXPECT_EQ(launch({"--port", port})->wait(), 2);
  EXPECT_THAT(read_file(log), HasSubstr("port " + port));
}

TEST_F(DaemonProcess, ADataFolderThatCannotBeMadeIsAClearError) {
  data = "/proc/pipewright";
  EXPECT_EQ(launch()->wait(), 2);
  EXPECT_THAT(read_file(log), HasSubstr("/proc/pipewright: the data folder cannot be made"));
}

TEST_F(DaemonProcess, OthersReadNothingOfADataFolderThatIsOpen) {
  const auto mode_of = [&](const char* name) {
    struct stat status {};
    EXPECT_EQ(::stat((data / name).c_str(), &status), 0) << name;
    return status.st_mode & 0777;
  };
  std::filesystem::create_directory(data);
  std::filesystem::create_directory(data / "jobs");
  ::chmod(data.c_str(), 0755);
  ::chmod((data / "jobs").c_str(), 0755);
  auto process = launch();
  submit(client_of(*process));
  for (const char* file : {"pipewright.db", "pipewright.db-wal", "pipewright.db-shm", "token"}) {
    EXPECT_EQ(mode_of(file), 0600u) << file;
  }
  EXPECT_EQ(mode_of("jobs"), 0700u);
  EXPECT_EQ(process->kill(SIGTERM), 0);
  ::chmod((data / "pipewright.db").c_str(), 0644);  // as an older daemon left it
  process = launch();
  client_of(*process);
  EXPECT_EQ(mode_of("pipewright.db"), 0600u);
}

/// The daemon as a service's user, with a certificate that root has made for it.
struct ServiceUser : DaemonProcess {
  std::string tls = folder.path() / "tls";

  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can start a daemon as another user";
    std::filesystem::create_directory(data);
    ASSERT_EQ(::chown(data.c_str(), 1234, 1234), 0);
    ::chmod(folder.path().c_str(), 0755);
  }
  void make_certificates(std::vector<std::string> words) {
    words.insert(words.begin(),
                 {"/bin/bash", PIPEWRIGHT_SOURCE_DIR "/deploy/tls/make-certificates.sh"});
    words.insert(words.end(), {tls, "localhost"});
    ASSERT_EQ(Process(words, folder.path() / "make.log").wait(), 0)
        << read_file(folder.path() / "make.log");
  }
  std::unique_ptr<Process> launch_as_user() {
    return std::make_unique<Process>(
        std::vector<std::string>{"/usr/bin/setpriv", "--reuid", "1234", "--regid", "1234",
                                 "--clear-groups", PIPEWRIGHT_BINARY_DIR "/bin/pipewrightd",
                                 "--data-dir", data.string(), "--port", "0", "--tls-certificate",
                                 tls + "/server.pem", "--tls-key", tls + "/server.key"},
        log);
  }
};

TEST_F(ServiceUser, ReadsTheCertificateThatWasMadeForItsGroup) {
  make_certificates({"--group", "1234"});
  const auto process = launch_as_user();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (read_file(data / "daemon.json").empty()) {
    ASSERT_TRUE(process->running()) << read_file(log);
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_THAT(read_file(data / "daemon.json"), HasSubstr("https://"));
  struct stat key {};
  ASSERT_EQ(::stat((tls + "/ca.key").c_str(), &key), 0);
  EXPECT_EQ(key.st_mode & 0777, 0600u) << "the daemon has no use for the CA's key";
}

TEST_F(ServiceUser, IsToldThatItMayNotReadAFile) {
  make_certificates({});
  EXPECT_EQ(launch_as_user()->wait(), 2);
  EXPECT_THAT(read_file(log), HasSubstr("server.pem: cannot be read: Permission denied"));
  make_certificates({"--group", "1234"});
  std::filesystem::remove(data / "token");
  std::ofstream(data / "token") << std::string(64, 'a');
  ::chmod((data / "token").c_str(), 0600);  // root's, as in a backup that root has restored
  EXPECT_EQ(launch_as_user()->wait(), 2);
  EXPECT_THAT(read_file(log), HasSubstr("token: cannot be read: Permission denied"));
}

TEST_F(DaemonProcess, BadOptionsAreExitStatusTwo) {
  EXPECT_EQ(launch({"--port", "x"})->wait(), 2);
  EXPECT_EQ(launch({"--listen", "nowhere"})->wait(), 2);
  EXPECT_EQ(launch({"--ranks", "-1"})->wait(), 2);
  EXPECT_EQ(launch({"--help"})->wait(), 0);
  EXPECT_THAT(read_file(log), HasSubstr("Example:"));
}

}  // namespace
}  // namespace pipewright::test
