// HTTPS: certificates, what is refused, and the client's words for it. (The rest of this program
// runs once more over TLS as service_daemon_over_tls.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>

#include "client/cli/net/api.hpp"
#include "tests/service/support.hpp"

namespace pipewright::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

struct TlsTest : testing::Test {
  TemporaryFolder folder;
  TestCertificates files = test_certificates();

  DaemonOptions options() {
    return {.data_dir = folder.path() / "data",
            .tls = {files.certificate, files.key},
            .tls_ca = files.ca};
  }
  /// A certificate of its own for this test.
  void use_certificate(const std::string& names, int days = 2) {
    files.certificate = folder.path() / "own.pem";
    files.key = folder.path() / "own.key";
    make_certificate(files.certificate, files.key, names, days);
  }
  static std::string health(const cli::Endpoint& endpoint) {
    try {
      return cli::Api(endpoint).health().status;
    } catch (const Error& error) {
      return error.what();
    }
  }
  cli::Endpoint endpoint(const RunningDaemon& daemon) const {
    return {.host = "127.0.0.1",
            .port = std::to_string(daemon.port()),
            .token = daemon.token(),
            .found_by = "a test",
            .tls = true,
            .tls_ca = files.ca};
  }
  void TearDown() override { speak_tls(""); }
};

TEST_F(TlsTest, AClientThatTrustsTheCaIsServed) {
  const RunningDaemon daemon(options());
  EXPECT_EQ(health(endpoint(daemon)), "ok");
  cli::Endpoint by_name = endpoint(daemon);
  by_name.host = "localhost";
  EXPECT_EQ(health(by_name), "ok");
  EXPECT_THAT(read_file(folder.path() / "data/daemon.json"),
              AllOf(HasSubstr("https://127.0.0.1:"), HasSubstr(files.ca.string())));
}

TEST_F(TlsTest, AClientThatDoesNotTrustTheCaLeaves) {
  const RunningDaemon daemon(options());
  cli::Endpoint system = endpoint(daemon);
  system.tls_ca = "";
  EXPECT_THAT(health(system), AllOf(HasSubstr("not trusted"), HasSubstr("--tls-ca")));
  cli::Endpoint other = endpoint(daemon);
  other.tls_ca = files.certificate;  // a certificate, but not of who signed it
  EXPECT_THAT(health(other), HasSubstr("not trusted"));
  other.tls_ca = files.key;
  EXPECT_THAT(health(other), HasSubstr("cannot be read as certificates"));
}

TEST_F(TlsTest, ACertificateForAnotherNameIsRefused) {
  use_certificate("DNS:cluster.example.org,IP:10.0.0.1");
  const RunningDaemon daemon(options());
  EXPECT_THAT(health(endpoint(daemon)), HasSubstr("is not for '127.0.0.1'"));
  cli::Endpoint by_name = endpoint(daemon);
  by_name.host = "localhost";
  EXPECT_THAT(health(by_name), HasSubstr("is not for 'localhost'"));
}

TEST_F(TlsTest, AnExpiredCertificateIsRefused) {
  use_certificate("IP:127.0.0.1", -1);
  const RunningDaemon daemon(options());
  EXPECT_THAT(health(endpoint(daemon)), HasSubstr("expired"));
}

TEST_F(TlsTest, PlainHttpToAPortOfTlsIsToldSo) {
  const RunningDaemon daemon(options());
  speak_tls("");
  const Reply reply = Client(daemon.port(), daemon.token()).get("/healthz");
  EXPECT_EQ(reply.status, 400);
  EXPECT_THAT(reply.body, HasSubstr("https://"));
  cli::Endpoint plain = endpoint(daemon);
  plain.tls = false;
  EXPECT_THAT(health(plain), HasSubstr("this port speaks TLS"));
}

TEST_F(TlsTest, TlsToAPortOfPlainHttpIsToldSo) {
  if (std::getenv("PIPEWRIGHT_TEST_TLS") != nullptr) GTEST_SKIP() << "every daemon speaks TLS here";
  const RunningDaemon daemon({.data_dir = folder.path() / "data"});
  EXPECT_THAT(health(endpoint(daemon)), HasSubstr("does not speak TLS"));
}

TEST_F(TlsTest, ACertificateIsReadAgainAtSighup) {
  use_certificate("DNS:old.example.org");
  const RunningDaemon daemon(options());
  EXPECT_THAT(health(endpoint(daemon)), HasSubstr("is not for '127.0.0.1'"));
  std::ofstream(files.certificate) << "no certificate";
  ::kill(::getpid(), SIGHUP);
  EXPECT_THAT(health(endpoint(daemon)), HasSubstr("is not for '127.0.0.1'"))
      << "the one before stays";
  use_certificate("IP:127.0.0.1");
  ::kill(::getpid(), SIGHUP);
  // The time limit of the test ends this.
  while (health(endpoint(daemon)) != "ok") std::this_thread::yield();
}

TEST_F(TlsTest, FilesThatAreNoGoodAreRefusedAtTheStart) {
  const auto fault = [&] {
    try {
      Daemon daemon(options());
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  files.certificate = folder.path() / "none.pem";
  EXPECT_THAT(fault(), AllOf(HasSubstr("--tls-certificate"), HasSubstr("none.pem")));
  files = test_certificates();
  use_certificate("IP:127.0.0.1");
  files.certificate = test_certificates().certificate;
  EXPECT_THAT(fault(), HasSubstr("is not the key of the certificate"));
  ::chmod(files.key.c_str(), 0644);
  EXPECT_THAT(fault(), HasSubstr("everybody may read it"));
}

TEST_F(TlsTest, BeyondLoopbackPlainHttpMustBeAskedForInWords) {
  const auto listens = [&](DaemonOptions given) {
    given.port = 0;
    given.listen = "0.0.0.0";
    try {
      Daemon daemon(given);
      return std::string("yes: " + daemon.url());
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
  };
  const fs::path data = folder.path() / "data";
  EXPECT_THAT(listens({.data_dir = data}), AllOf(HasSubstr("--tls-certificate"),
                                                 HasSubstr("--allow-plain-http-beyond-loopback")));
  EXPECT_THAT(listens({.data_dir = data, .plain_beyond_loopback = true}),
              HasSubstr("yes: http://127.0.0.1:"));
  EXPECT_THAT(listens(options()), HasSubstr("yes: https://127.0.0.1:"));
  DaemonOptions named = options();
  named.announce = "localhost";
  EXPECT_THAT(listens(named), HasSubstr("yes: https://localhost:"));
}

}  // namespace
}  // namespace pipewright::test
