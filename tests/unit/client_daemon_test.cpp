// How the client finds a daemon and what it makes of its answers; the daemon is a socket here that
// gives one prepared answer.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "client/cli/local/process.hpp"
#include "client/cli/net/api.hpp"
#include "client/cli/net/stream.hpp"

namespace pipewright::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::ThrowsMessage;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "pipewright-client-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() { fs::remove_all(path); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name) << text;
  }
  std::string read(const std::string& name) const {
    std::ifstream file(path / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  fs::path path;
};

/// Accepts one connection, reads a request's header and answers with the bytes given.
class OneAnswer {
 public:
  explicit OneAnswer(std::string answer) : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 1), 0);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port = ntohs(address.sin_port);
    thread_ = std::thread([this, answer = std::move(answer)] { serve(answer); });
  }
  ~OneAnswer() {
    ::shutdown(listener_, SHUT_RDWR);  // ends an accept() that nobody came to
    thread_.join();
    ::close(listener_);
  }
  Endpoint endpoint() const {
    return {
        .host = "127.0.0.1", .port = std::to_string(port), .token = "secret", .found_by = "a test"};
  }
  /// The request, once the exchange is over.
  std::string request() {
    thread_.join();
    thread_ = std::thread([] {});
    return request_;
  }
  int port = 0;

 private:
  void serve(const std::string& answer) {
    const int peer = ::accept(listener_, nullptr, nullptr);
    if (peer < 0) return;
    char bytes[4096];
    while (request_.find("\r\n\r\n") == std::string::npos) {
      const ssize_t count = ::read(peer, bytes, sizeof bytes);
      if (count <= 0) break;
      request_.append(bytes, static_cast<std::size_t>(count));
    }
    EXPECT_EQ(::write(peer, answer.data(), answer.size()), static_cast<ssize_t>(answer.size()));
    ::close(peer);
  }

  int listener_;
  std::string request_;
  std::thread thread_;
};

std::string answer(const std::string& status, const std::string& body,
                   const std::string& type = "application/x-protobuf") {
  return "HTTP/1.1 " + status + "\r\nContent-Type: " + type +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" +
         body;
}

std::string refusal(const std::string& status, const std::string& error) {
  return answer(status, encode(ErrorReply{error, ""}, WireFormat::protobuf));
}

class FindDaemon : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name :
         {"PIPEWRIGHT_DATA_DIR", "PIPEWRIGHT_URL", "PIPEWRIGHT_TOKEN_FILE", "PIPEWRIGHT_TLS_CA"}) {
      ::unsetenv(name);
    }
  }
  void TearDown() override { SetUp(); }
  TemporaryFolder folder;
};

TEST_F(FindDaemon, SaysHowToStartOneWhenThereIsNone) {
  EXPECT_THAT([&] { find_daemon({.data_dir = folder.path.string()}); },
              ThrowsMessage<Error>(HasSubstr("start one with `pipewright up --data-dir " +
                                             folder.path.string() + "`")));
}

TEST_F(FindDaemon, SaysThatADaemonHasGoneWhenItsRecordIsStale) {
  // Our own process is alive, and no pipewrightd: its number may have been used again.
  folder.write("daemon.json",
               R"({"url": "http://127.0.0.1:7070", "pid": )" + std::to_string(::getpid()) + "}");
  folder.write("token", "secret\n");
  EXPECT_THAT([&] { find_daemon({.data_dir = folder.path.string()}); },
              ThrowsMessage<Error>(HasSubstr("has gone")));
}

TEST_F(FindDaemon, RefusesABrokenRecord) {
  folder.write("daemon.json", R"({"url": 3})");
  EXPECT_THROW(find_daemon({.data_dir = folder.path.string()}), ConfigError);
}

TEST_F(FindDaemon, TakesAUrlWithATokenFile) {
  folder.write("token", "secret\n");
  const Endpoint endpoint =
      find_daemon({.url = "http://[::1]:7071/", .token_file = (folder.path / "token").string()});
  EXPECT_EQ(endpoint.host, "::1");
  EXPECT_EQ(endpoint.url(), "http://[::1]:7071");
  EXPECT_EQ(endpoint.port, "7071");
  EXPECT_EQ(endpoint.token, "secret");
}

TEST_F(FindDaemon, NeverSendsALocalTokenToAUrl) {
  EXPECT_THAT([&] { find_daemon({.url = "http://127.0.0.1:7070"}); },
              ThrowsMessage<ConfigError>(HasSubstr("--token-file")));
}

TEST_F(FindDaemon, PutsAFlagBeforeTheEnvironment) {
  ::setenv("PIPEWRIGHT_URL", "http://127.0.0.1:1", 1);
  EXPECT_THAT([&] { find_daemon({.data_dir = folder.path.string()}); },
              ThrowsMessage<Error>(HasSubstr(folder.path.string())));
  ::setenv("PIPEWRIGHT_DATA_DIR", "/from/environment", 1);
  EXPECT_EQ(data_dir_of({.data_dir = "/from/flag"}), "/from/flag");
  EXPECT_EQ(data_dir_of({}), "/from/environment");
}

TEST(ParseUrl, RefusesWhatIsNotHostAndPort) {
  for (const char* url : {"127.0.0.1:7070", "ftp://h:1", "http://", "https://", "http://[::1",
                          "http://[::1]x:1", "http://h:0", "http://h:65536", "http://h:x",
                          "http://h:1/path", "http://user@h:1", "http://h:"}) {
    EXPECT_THROW(net::parse_url(url), ConfigError) << url;
  }
  EXPECT_EQ(net::parse_url("http://h").port, "80");
  EXPECT_EQ(net::parse_url("https://h").port, "443");
  EXPECT_EQ(net::parse_url("http://[::1]:7/").host, "::1");
  for (const char* url : {"http://[::1]:7", "https://h:7070", "http://127.0.0.1:1"}) {
    EXPECT_EQ(net::parse_url(url).text(), url);
  }
}

TEST(Api, SendsTheTokenAndReadsTheAnswer) {
  Job job;
  job.id = 12;
  job.state = JobState::running;
  job.spec = Value::map();
  OneAnswer server(answer("200 OK", encode(job, WireFormat::protobuf)));
  EXPECT_EQ(Api(server.endpoint()).job(12).state, JobState::running);
  const std::string request = server.request();
  EXPECT_THAT(request, testing::StartsWith("GET /v1/jobs/12 HTTP/1.1\r\n"));
  EXPECT_THAT(request, HasSubstr("Authorization: Bearer secret\r\n"));
  EXPECT_THAT(request, HasSubstr("Accept: application/x-protobuf\r\n"));
}

TEST(Api, TakesNoSuchJobForTheUsersMistake) {
  OneAnswer server(refusal("404 Not Found", "there is no job 99"));
  EXPECT_THAT([&] { Api(server.endpoint()).job(99); },
              ThrowsMessage<ConfigError>(HasSubstr("there is no job 99")));
}

TEST(Api, SaysThatTheTokenIsWrong) {
  OneAnswer server(refusal("401 Unauthorized", "no"));
  EXPECT_THAT([&] { Api(server.endpoint()).pools(); },
              ThrowsMessage<ApiError>(HasSubstr("does not accept the token")));
}

TEST(Api, KeepsTheDaemonsWordsOfAConflict) {
  OneAnswer server(refusal("409 Conflict", "job 3 has ended"));
  EXPECT_THAT([&] { Api(server.endpoint()).cancel(3); },
              ThrowsMessage<ApiError>("job 3 has ended"));
}

TEST(Api, DoubtsThatAStrangerIsADaemon) {
  OneAnswer server(answer("500 Oops", "", "text/html"));
  EXPECT_THAT([&] { Api(server.endpoint()).pools(); },
              ThrowsMessage<ApiError>(HasSubstr("is it a pipewright daemon?")));
}

TEST(Api, RefusesAnAnswerThatIsNoMessage) {
  OneAnswer server(answer("200 OK", "\xFF\xFF\xFF", "application/x-protobuf"));
  EXPECT_THROW(Api(server.endpoint()).pools(), ProtocolError);
}

TEST(Http, SaysThatAnAnswerBrokeOff) {
  OneAnswer server("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort");
  EXPECT_THAT([&] { Api(server.endpoint()).pools(); },
              ThrowsMessage<ConnectionError>(HasSubstr("broke off")));
}

TEST(Http, TellsADaemonThatHadBeenReachedFromOneThatIsNotThere) {
  OneAnswer silent("");
  EXPECT_THROW(Api(silent.endpoint()).submit(Value::map(), "key-1"), BrokenConnection);
  EXPECT_THAT(silent.request(), HasSubstr("Idempotency-Key: key-1\r\n"));
}

TEST(Http, SaysThatNobodyListens) {
  Endpoint endpoint;
  {
    OneAnswer gone("");
    endpoint = gone.endpoint();
  }
  EXPECT_THAT([&] { Api(endpoint).pools(); },
              ThrowsMessage<ConnectionError>(HasSubstr("start one with `pipewright up`")));
}

TEST(Http, WritesADownloadedFileWhole) {
  const TemporaryFolder folder;
  const std::string bytes = std::string(300000, 'x') + "end";
  OneAnswer server(answer("200 OK", bytes, "application/octet-stream"));
  Api(server.endpoint()).download_file(1, 0, "a.csv", folder.path / "a.csv");
  EXPECT_EQ(folder.read("a.csv"), bytes);
  EXPECT_FALSE(fs::exists(folder.path / "a.csv.part"));
}

TEST(Http, LeavesNoFileBehindARefusal) {
  const TemporaryFolder folder;
  OneAnswer server(refusal("404 Not Found", "there is no file 'a.csv'"));
  EXPECT_THROW(Api(server.endpoint()).download_file(1, 0, "a.csv", folder.path / "a.csv"),
               ConfigError);
  EXPECT_TRUE(fs::is_empty(folder.path));
}

class NoFrames : public StreamListener {
 public:
  void on_frame(std::size_t, const StreamFrame&) override { ADD_FAILURE() << "a frame came"; }
  void on_lost(std::size_t, const std::string&, std::chrono::seconds) override {
    ADD_FAILURE() << "it tries again";
  }
  void on_resumed(std::size_t) override {}
};

TEST(Follow, EndsAtOnceWhenTheDaemonRefusesTheStream) {
  OneAnswer server(refusal("404 Not Found", "there is no job 5"));
  NoFrames listener;
  const FollowedJob job{.id = 5, .from_sequence = 3};
  EXPECT_THAT([&] { follow([&] { return server.endpoint(); }, std::span(&job, 1), listener, {}); },
              ThrowsMessage<ConfigError>(HasSubstr("there is no job 5")));
  EXPECT_THAT(server.request(), testing::StartsWith("GET /v1/jobs/5/stream?from=3 HTTP/1.1\r\n"));
}

TEST(Detached, WritesToItsLogAndInheritsNoDescriptor) {
  const TemporaryFolder folder;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);  // without O_CLOEXEC: a child would keep it open
  const pid_t pid = start_detached(
      {"/bin/sh", "-c", "echo started; ls /proc/self/fd; exec sleep 60"}, folder.path / "log");
  ::close(ends[1]);
  char byte;
  EXPECT_EQ(::read(ends[0], &byte, 1), 0);  // the end of the pipe, though the child runs
  ::close(ends[0]);
  EXPECT_EQ(ended_child(pid), std::nullopt);
  EXPECT_EQ(terminate(pid, std::chrono::seconds(30)), Ended::ended);
  while (!ended_child(pid)) std::this_thread::yield();
  EXPECT_EQ(terminate(pid, std::chrono::seconds(30)), Ended::already_gone);
}

TEST(Detached, SaysWhyAProgramCannotBeStarted) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { start_detached({"/no/such/program"}, folder.path / "log"); },
              ThrowsMessage<Error>(HasSubstr("No such file")));
}

TEST(Ports, AreInUseWhileSomebodyListens) {
  const OneAnswer server("");
  EXPECT_FALSE(port_is_free(server.port));
  EXPECT_TRUE(port_is_free(0));
}

TEST(Tail, GivesTheLastLinesFromAByteOn) {
  const TemporaryFolder folder;
  folder.write("log", "old\none\ntwo\nthree\n");
  EXPECT_EQ(tail(folder.path / "log", 4, 2), "  two\n  three\n");
  EXPECT_EQ(tail(folder.path / "log", 4, 9), "  one\n  two\n  three\n");
}

}  // namespace
}  // namespace pipewright::cli
