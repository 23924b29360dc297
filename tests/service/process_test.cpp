// The real pipewrightd: what survives kill -9, how it ends, what it refuses to start with.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "tests/service/support.hpp"

namespace pipewright::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// Ended by its own pid, whatever happens.
class Process {
 public:
  Process(std::vector<std::string> words, const std::filesystem::path& log) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ != 0) return;
    const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    ::close_range(3, ~0U, 0);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  ~Process() {
    if (pid_ > 0) kill(SIGKILL);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  bool running() {
    if (pid_ > 0 && ::waitpid(pid_, &status_, WNOHANG) == pid_) pid_ = -1;
    return pid_ > 0;
  }
  /// Its exit status, or minus the signal that ended it.
  int wait() {
    if (pid_ > 0) ::waitpid(pid_, &status_, 0);
    pid_ = -1;
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : -WTERMSIG(status_);
  }
  int kill(int signal) {
    ::kill(pid_, signal);
    return wait();
  }

 private:
  pid_t pid_ = -1;
  int status_ = 0;
};

struct DaemonProcess : testing::Test {
  TemporaryFolder folder;
  std::filesystem::path data = folder.path() / "data";
  std::filesystem::path log = folder.path() / "log";

  std::unique_ptr<Process> launch(std::vector<std::string> more = {"--port", "0"}) {
    std::vector<std::string> words = {PIPEWRIGHT_BINARY_DIR "/bin/pipewrightd", "--data-dir",
                                      data.string()};
    words.insert(words.end(), more.begin(), more.end());
    return std::make_unique<Process>(words, log);
  }
  /// A client of the daemon once it listens.
  Client client_of(Process& process) {
    const std::string pid = "\"pid\": " + std::to_string(process.pid());
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    std::string text;
    while (text.find(pid) == std::string::npos) {
      text = read_file(data / "daemon.json");
      if (!process.running() || std::chrono::steady_clock::now() > deadline) {
        throw std::runtime_error("the daemon did not start: " + read_file(log));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    const std::size_t url = text.find("http://");
    const std::string address = text.substr(url, text.find('"', url) - url);
    return {port_of(address), read_file(data / "token").substr(0, 64)};
  }
};

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
  process = launch();
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
  WebSocketClient stream(client.port(), "/v1/jobs/1/stream?token=" + client.token(), "");
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

TEST_F(DaemonProcess, BadOptionsAreExitStatusTwo) {
  EXPECT_EQ(launch({"--port", "x"})->wait(), 2);
  EXPECT_EQ(launch({"--listen", "nowhere"})->wait(), 2);
  EXPECT_EQ(launch({"--ranks", "-1"})->wait(), 2);
  EXPECT_EQ(launch({"--help"})->wait(), 0);
  EXPECT_THAT(read_file(log), HasSubstr("Example:"));
}

}  // namespace
}  // namespace pipewright::test
