// The real programs over TLS with tokens of their own, and where secrets must not be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "proto/codec/job_file.hpp"
#include "tests/e2e/processes.hpp"

namespace pipewright::e2e {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;
using Words = std::vector<std::string>;

const fs::path source = PIPEWRIGHT_SOURCE_DIR;
const fs::path binaries = fs::path(PIPEWRIGHT_BINARY_DIR) / "bin";
const std::string worker = (binaries / "pipewright-worker").string();

const char* const job_text =
    "objective: {quadratic: {generate: {kind: tridiagonal, examples: 60, parameters: 32},"
    " batch_size: 5}}\n"
    "schedule: {pipedream: {stages: 2, microbatches: 60}}\n"
    "optimizer: {sgd: {learning_rate: 0.01}}\n";

struct Secure : testing::Test {
  Secure() {
    std::string name = (fs::temp_directory_path() / "pipewright-e2e-XXXXXX").string();
    path = ::mkdtemp(name.data());
    const Outcome made =
        run({(source / "deploy/tls/make-certificates.sh").string(), file("tls"), "localhost"});
    EXPECT_EQ(made.status, 0) << made.err;
    daemon = std::make_unique<Running>(
        Words{(binaries / "pipewrightd").string(), "--data-dir", file("data"), "--port", "0",
              "--ranks", "0", "--tls-certificate", file("tls/server.pem"), "--tls-key",
              file("tls/server.key"), "--tls-ca", file("tls/ca.pem"), "--log-level", "debug"});
    until([&] { return fs::exists(file("data/daemon.json")); });
    url = JobFile::read(file("data/daemon.json")).tree().at("url").as_text();
    std::ofstream(file("job.yaml")) << job_text;
    secrets.push_back(read_file(file("data/token")).substr(0, 64));
  }
  ~Secure() override {
    daemon.reset();
    fs::remove_all(path);
  }

  std::string file(const std::string& name) const { return (path / name).string(); }
  /// With the token of the data folder.
  Outcome admin(Words words) const {
    words.insert(words.begin(), (binaries / "pipewright").string());
    words.insert(words.end(), {"--data-dir", file("data")});
    return run(words);
  }
  Words command_of(const std::string& user, Words words) const {
    words.insert(
        words.begin(),
        {"/usr/bin/env", "PIPEWRIGHT_URL=" + url, "PIPEWRIGHT_TOKEN_FILE=" + file(user + ".token"),
         "PIPEWRIGHT_TLS_CA=" + file("tls/ca.pem"), (binaries / "pipewright").string()});
    return words;
  }
  Outcome as(const std::string& user, Words words) const { return run(command_of(user, words)); }
  void make_token(const std::string& name, const std::string& role) {
    const Outcome made = admin({"token", "create", "--name", name, "--role", role});
    ASSERT_EQ(made.status, 0) << made.err;
    EXPECT_THAT(made.out, MatchesRegex("[0-9a-f]+\n"));
    EXPECT_THAT(made.err, Not(HasSubstr(made.out.substr(0, 64))));
    std::ofstream(file(name + ".token")) << made.out;
    secrets.push_back(made.out.substr(0, 64));
  }
  std::unique_ptr<Running> start_pool() const {
    auto pool = std::make_unique<Running>(
        Words{(source / "tests/support/mpirun.sh").string(), "2", worker, "--daemon", url,
              "--token-file", file("pool.token"), "--tls-ca", file("tls/ca.pem"), "--name", "p"});
    until([&] { return admin({"pools", "--json"}).out.find("\"p\"") != std::string::npos; });
    return pool;
  }
  void expect_no_secrets(const std::string& text, const std::string& where) const {
    for (const std::string& secret : secrets) {
      EXPECT_EQ(text.find(secret), std::string::npos) << where << " shows a secret";
    }
  }

  fs::path path;
  std::string url;
  std::unique_ptr<Running> daemon;
  std::vector<std::string> secrets;
};

TEST_F(Secure, APoolAndUsersOverTlsAndNoSecretAnywhere) {
  if (!fs::exists(worker)) GTEST_SKIP() << "there is no pipewright-worker: built without MPI";
  ASSERT_THAT(url, HasSubstr("https://127.0.0.1:"));
  make_token("alice", "submit");
  make_token("bob", "read");
  make_token("pool", "pool");
  auto pool = start_pool();

  EXPECT_EQ(as("alice", {"submit", file("job.yaml")}).out, "1\n");
  EXPECT_EQ(as("bob", {"wait", "1"}).status, 0);
  EXPECT_THAT(as("bob", {"show", "1", "--json"}).out, HasSubstr("\"alice\""));
  EXPECT_EQ(as("bob", {"export", "1", "--out", file("exported")}).status, 0);
  EXPECT_EQ(
      run({(binaries / "pipewright").string(), "run", file("job.yaml"), "--out", file("alone")})
          .status,
      0);
  for (const char* name : {"weights.npy", "objective.csv", "timeline.csv"}) {
    EXPECT_EQ(read_file(path / "exported" / name), read_file(path / "alone" / name)) << name;
  }
  const Outcome refused = as("bob", {"submit", file("job.yaml")});
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("'submit'"), HasSubstr("'bob'")));
  EXPECT_EQ(as("pool", {"list"}).status, 1);

  const std::string wrong(64, 'e');
  secrets.push_back(wrong);
  std::ofstream(file("wrong.token")) << wrong << "\n";
  const Outcome unknown = as("wrong", {"list"});
  EXPECT_EQ(unknown.status, 1);
  for (const Outcome* outcome : {&refused, &unknown}) {
    expect_no_secrets(outcome->out + outcome->err, "an error message");
  }

  std::vector<pid_t> processes{daemon->pid(), pool->pid()};
  const auto ranks = descendants(pool->pid(), "pipewright-work");
  EXPECT_EQ(ranks.size(), 2u);
  processes.insert(processes.end(), ranks.begin(), ranks.end());
  for (const pid_t pid : processes) {
    const std::string command = read_file("/proc/" + std::to_string(pid) + "/cmdline");
    EXPECT_NE(command, "");
    expect_no_secrets(command, "the command line of " + std::to_string(pid));
  }
  pool->signal(SIGUSR1);
  const Outcome left = pool->wait();
  expect_no_secrets(left.out + left.err, "the pool's output");
  daemon->signal(SIGTERM);
  const Outcome ended = daemon->wait();
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("token refused"), HasSubstr("alice")))
      << "the log of this test is that of the daemon";
  expect_no_secrets(ended.err, "the daemon's log");
  for (const auto& entry : fs::recursive_directory_iterator(path / "data")) {
    if (!entry.is_regular_file() || entry.path().filename() == "token") continue;
    expect_no_secrets(read_file(entry.path()), entry.path().string());
  }
}

TEST_F(Secure, TokensAreListedAndRevoked) {
  make_token("alice", "read");
  EXPECT_EQ(
      admin({"token", "create", "--name", "carol", "--role", "admin", "--expires", "30d"}).status,
      0);
  const Outcome listed = admin({"token", "list"});
  EXPECT_THAT(listed.out, AllOf(HasSubstr("alice"), HasSubstr("read"), HasSubstr("carol"),
                                HasSubstr("never"), HasSubstr("LAST USED")));
  expect_no_secrets(listed.out, "the list");
  EXPECT_EQ(as("alice", {"list"}).status, 0);
  EXPECT_EQ(admin({"token", "revoke", "alice"}).out, "token 'alice' is revoked\n");
  EXPECT_EQ(as("alice", {"list"}).status, 1);
  EXPECT_EQ(admin({"token", "revoke", "alice"}).status, 2);
  EXPECT_EQ(admin({"token", "create", "--name", "x", "--role", "root"}).status, 2);
  EXPECT_EQ(admin({"token", "create", "--name", "x/y", "--role", "read"}).status, 2);
  for (const char* time : {"30", "d", "-3d", "0h", "1y", "99999999999d"}) {
    const Outcome bad =
        admin({"token", "create", "--name", "x", "--role", "read", "--expires", time});
    EXPECT_EQ(bad.status, 2) << time;
    EXPECT_THAT(bad.err, HasSubstr("30d")) << time;
  }
}

TEST_F(Secure, WhoDoesNotTrustTheCertificateIsNotServed) {
  make_token("alice", "submit");
  Words command = command_of("alice", {"list"});
  for (std::string& word : command) {
    if (word.starts_with("PIPEWRIGHT_TLS_CA=")) word = "PIPEWRIGHT_TLS_CA=";
  }
  const Outcome refused = run(command);
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("not trusted"), HasSubstr("--tls-ca")));
}

TEST(SystemdUnit, IsValidAndExposesLittle) {
  if (!on_path("systemd-analyze")) GTEST_SKIP() << "there is no systemd-analyze here";
  std::string unit = read_file(source / "deploy/systemd/pipewrightd.service");
  const std::string installed = "/usr/local/bin/pipewrightd";
  ASSERT_NE(unit.find(installed), std::string::npos);
  unit.replace(unit.find(installed), installed.size(), (binaries / "pipewrightd").string());
  std::string name = (fs::temp_directory_path() / "pipewright-e2e-XXXXXX").string();
  const fs::path folder = ::mkdtemp(name.data());
  const std::string file = (folder / "pipewrightd.service").string();
  std::ofstream(file) << unit;
  const Outcome verified = run({"/usr/bin/env", "systemd-analyze", "verify", file});
  EXPECT_EQ(verified.status, 0);
  EXPECT_THAT(verified.out + verified.err, IsEmpty());
  // Of 100, where 100 is a service without any bounds.
  const Outcome exposed = run(
      {"/usr/bin/env", "systemd-analyze", "security", "--offline=true", "--threshold=25", file});
  EXPECT_EQ(exposed.status, 0) << exposed.out;
  fs::remove_all(folder);
}

}  // namespace
}  // namespace pipewright::e2e
