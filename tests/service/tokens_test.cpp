// Who may do what with which token, and how tokens are made, kept, slowed and ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "daemon/auth/attempts.hpp"
#include "daemon/auth/tokens.hpp"
#include "tests/service/support.hpp"

namespace pipewright::test {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t now = 1'800'000'000'000;

/// A daemon with a token of each role.
struct TokensTest : testing::Test {
  TemporaryFolder folder;
  DaemonOptions options{.data_dir = folder.path() / "data",
                        .net = {.attempts = {.pause = milliseconds(0)}}};
  std::unique_ptr<RunningDaemon> daemon = std::make_unique<RunningDaemon>(options);
  Client admin = daemon->client();

  Reply post_token(const TokenRequest& request) const {
    return admin.send("POST", "/v1/tokens", encode(request, WireFormat::json),
                      {{"Content-Type", "application/json"}});
  }
  Client with(const std::string& secret) const { return {admin.port(), secret}; }
  Client with_role(const std::string& role, std::string name = {}) const {
    if (name.empty()) name = "the-" + role;
    const Reply reply = post_token({name, role, 0});
    EXPECT_EQ(reply.status, 201) << reply.body;
    return with(decode<TokenReply>(reply.body, WireFormat::json).token);
  }
  void restart() {
    daemon.reset();
    daemon = std::make_unique<RunningDaemon>(options);
    admin = daemon->client();
  }
};

std::string error_of(const Reply& reply) {
  return decode<ErrorReply>(reply.body, WireFormat::json).error;
}

int websocket_status(const Client& client, const std::string& target) {
  return WebSocketClient(client.port(), target, client.token()).reply().status;
}

TEST_F(TokensTest, EachRouteNeedsItsRole) {
  const Client read = with_role("read"), submit_ = with_role("submit"), pool = with_role("pool"),
               other_admin = with_role("admin");
  submit(submit_);
  struct Row {
    const char* method;
    const char* target;
    int read, submit, pool, admin;
  };
  // What the role lets through is refused for other reasons, which come later.
  const std::vector<Row> rows = {
      {"GET", "/metrics", 200, 200, 403, 200},
      {"GET", "/v1/jobs", 200, 200, 403, 200},
      {"GET", "/v1/jobs/1", 200, 200, 403, 200},
      {"GET", "/v1/jobs/1/events", 200, 200, 403, 200},
      {"GET", "/v1/jobs/1/events?kind=log", 200, 200, 403, 200},
      {"GET", "/v1/jobs/1/runs", 200, 200, 403, 200},
      {"GET", "/v1/jobs/1/runs/0", 200, 200, 403, 200},
      {"GET", "/v1/jobs/1/runs/0/files", 409, 409, 403, 409},
      {"GET", "/v1/jobs/1/files", 409, 409, 403, 409},
      {"GET", "/v1/jobs/1/files/a", 409, 409, 403, 409},
      {"GET", "/v1/jobs/1/stream", 426, 426, 403, 426},
      {"POST", "/v1/jobs", 403, 415, 403, 415},
      {"DELETE", "/v1/jobs/1", 403, 409, 403, 409},
      {"POST", "/v1/jobs/99/cancel", 403, 404, 403, 404},
      {"GET", "/v1/pools", 200, 200, 403, 200},
      {"GET", "/v1/pools/attach", 403, 403, 426, 426},
      {"POST", "/v1/pools/nobody/drop", 403, 403, 403, 404},
      {"GET", "/v1/token", 200, 200, 200, 200},
      {"GET", "/v1/tokens", 403, 403, 403, 200},
      {"POST", "/v1/tokens", 403, 403, 403, 415},
      {"DELETE", "/v1/tokens/nobody", 403, 403, 403, 404},
      {"GET", "/healthz", 200, 200, 200, 200},
      {"GET", "/nothing", 404, 404, 404, 404},
  };
  for (const Row& row : rows) {
    const auto expect = [&](const Client& client, int status, const char* role) {
      const Reply reply = client.send(row.method, row.target);
      EXPECT_EQ(reply.status, status)
          << role << ": " << row.method << " " << row.target << ": " << reply.body;
      if (status == 403) {
        EXPECT_THAT(error_of(reply), HasSubstr("'the-" + std::string(role) + "'"));
        EXPECT_THAT(reply.body, Not(HasSubstr(client.token())));
      }
    };
    expect(read, row.read, "read");
    expect(submit_, row.submit, "submit");
    expect(pool, row.pool, "pool");
    expect(other_admin, row.admin, "admin");
    expect(admin, row.admin, "data folder's");
  }
}

TEST_F(TokensTest, WebSocketsNeedTheirRoles) {
  const Client read = with_role("read"), pool = with_role("pool");
  submit(admin);
  EXPECT_EQ(websocket_status(read, "/v1/jobs/1/stream"), 101);
  EXPECT_EQ(websocket_status(pool, "/v1/jobs/1/stream"), 403);
  EXPECT_EQ(websocket_status(read, "/v1/pools/attach"), 403);
  EXPECT_EQ(websocket_status(pool, "/v1/pools/attach"), 101);
  FakePool attached(pool, "of a pool's token");
  const StartRun start = attached.expect<StartRun>();
  attached.run(start, 3);
  EXPECT_EQ(wait_for(read, 1, JobState::succeeded).id, 1u);
}

TEST_F(TokensTest, JobsRememberWhoseTheyAreAndOnlyHeOrAnAdminEndsThem) {
  const Client alice = with_role("submit", "alice"), bob = with_role("submit", "bob");
  const std::uint32_t first = submit(alice), second = submit(alice), of_admin = submit(admin);
  EXPECT_EQ(show(bob, first).user, "alice") << "others see it";
  EXPECT_EQ(show(bob, of_admin).user, "admin");
  const std::string cancel = "/v1/jobs/" + std::to_string(first) + "/cancel";
  const Reply refused = bob.send("POST", cancel);
  EXPECT_EQ(refused.status, 403);
  EXPECT_THAT(error_of(refused), HasSubstr("'alice'"));
  EXPECT_EQ(show(bob, first).state, JobState::queued);
  EXPECT_EQ(alice.send("POST", cancel).status, 200);
  EXPECT_EQ(admin.send("POST", "/v1/jobs/" + std::to_string(second) + "/cancel").status, 200);
  wait_for(alice, first, JobState::cancelled);
  const std::string job = "/v1/jobs/" + std::to_string(first);
  EXPECT_EQ(bob.send("DELETE", job).status, 403);
  restart();
  EXPECT_EQ(show(with(bob.token()), first).user, "alice");
  EXPECT_EQ(with(alice.token()).send("DELETE", job).status, 200);
}

TEST_F(TokensTest, OnlyAnAdminMayGoBeforeOthers) {
  const Client submit_ = with_role("submit");
  const auto status_of = [](const Client& client, int priority) {
    Value job = small_job();
    job.set("priority", priority);
    return client
        .send("POST", "/v1/jobs", encode(JobSpecBody{job}, WireFormat::protobuf),
              {{"Content-Type", "application/x-protobuf"}})
        .status;
  };
  EXPECT_EQ(status_of(submit_, 1), 403);
  EXPECT_EQ(status_of(submit_, -1), 201);
  EXPECT_EQ(status_of(admin, 1), 201);
  EXPECT_EQ(status_of(admin, 101), 400);
}

TEST_F(TokensTest, ATokenIsMadeOnceAndKeptWithoutItsSecret) {
  const Reply made = post_token({"alice", "submit", 0});
  ASSERT_EQ(made.status, 201);
  const auto reply = decode<TokenReply>(made.body, WireFormat::json);
  EXPECT_EQ(reply.token.size(), 64u);
  EXPECT_EQ(reply.info.name, "alice");
  EXPECT_EQ(reply.info.role, "submit");
  EXPECT_GT(reply.info.created_unix_ms, 0);
  EXPECT_EQ(post_token({"alice", "read", 0}).status, 409);
  EXPECT_EQ(with(reply.token).get("/v1/jobs").status, 200);
  const Reply listed = admin.get("/v1/tokens");
  EXPECT_THAT(listed.body, Not(HasSubstr(reply.token)));
  const auto list = decode<TokenList>(listed.body, WireFormat::json);
  ASSERT_EQ(list.tokens.size(), 2u);
  EXPECT_EQ(list.tokens[0].name, "admin");
  EXPECT_EQ(list.tokens[1].name, "alice");
  EXPECT_GT(list.tokens[1].last_used_unix_ms, 0);
  const auto own = decode<TokenInfo>(with(reply.token).get("/v1/token").body, WireFormat::json);
  EXPECT_EQ(own.name, "alice");
  restart();
  const auto again = decode<TokenList>(admin.get("/v1/tokens").body, WireFormat::json);
  EXPECT_EQ(again.tokens[1].last_used_unix_ms, list.tokens[1].last_used_unix_ms);
  EXPECT_EQ(with(reply.token).get("/v1/jobs").status, 200);
  for (const auto& file : std::filesystem::recursive_directory_iterator(options.data_dir)) {
    if (!file.is_regular_file()) continue;
    EXPECT_THAT(read_file(file.path()), Not(HasSubstr(reply.token))) << file.path();
  }
  struct stat status {};
  ASSERT_EQ(::stat((options.data_dir / "tokens.json").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(TokensTest, BadTokensAreNotMade) {
  const auto refused = [&](const TokenRequest& request) {
    const Reply reply = post_token(request);
    EXPECT_EQ(reply.status, 400) << reply.body;
    return error_of(reply);
  };
  EXPECT_THAT(refused({"", "read", 0}), HasSubstr("1 to 64"));
  EXPECT_THAT(refused({"a/b", "read", 0}), HasSubstr("a/b"));
  EXPECT_THAT(refused({std::string(65, 'a'), "read", 0}), HasSubstr("1 to 64"));
  EXPECT_THAT(refused({"a", "root", 0}), HasSubstr("read, submit, pool, admin"));
  EXPECT_THAT(refused({"a", "read", 1}), HasSubstr("has passed"));
  EXPECT_EQ(post_token({"admin", "read", 0}).status, 409);
}

TEST_F(TokensTest, ARevokedTokenEndsWhatItHasOpened) {
  const Client alice = with_role("read", "alice"), pool_token = with_role("pool");
  submit(admin);
  Watcher watcher(alice, 1);
  ASSERT_TRUE(watcher.until<LiveFromHere>());
  FakePool pool(pool_token, "fake");
  pool.expect<StartRun>();
  EXPECT_EQ(admin.send("DELETE", "/v1/tokens/alice").status, 200);
  const auto closing = watcher.until<Closing>();
  ASSERT_TRUE(closing);
  EXPECT_EQ(closing->reason, "the token 'alice' was revoked");
  EXPECT_EQ(alice.get("/v1/jobs").status, 401);
  EXPECT_EQ(admin.send("DELETE", "/v1/tokens/alice").status, 404);
  EXPECT_EQ(admin.send("DELETE", "/v1/tokens/the-pool").status, 200);
  EXPECT_FALSE(pool.receive()) << "its connection is closed";
  EXPECT_EQ(admin.send("DELETE", "/v1/tokens/admin").status, 400);
  EXPECT_EQ(admin.get("/v1/jobs").status, 200);
}

TEST(TokenFile, TokensExpire) {
  TemporaryFolder folder;
  Tokens tokens(folder.path());
  const TokenReply made = tokens.create({"alice", "read", now + 1000}, now);
  EXPECT_FALSE(tokens.find(made.token, now)->ended(now + 999));
  EXPECT_TRUE(tokens.find(made.token, now)->ended(now + 1000));
  EXPECT_FALSE(tokens.find(made.token.substr(1), now));
  EXPECT_FALSE(tokens.find("", now));
}

TEST(TokenFile, WhatOthersMayReadOrIsNoneIsRefused) {
  TemporaryFolder folder;
  Tokens(folder.path()).create({"alice", "read", 0}, now);
  const auto file = folder.path() / "tokens.json";
  ::chmod(file.c_str(), 0640);
  EXPECT_THROW(Tokens(folder.path()), ConfigError);
  ::chmod(file.c_str(), 0600);
  EXPECT_NO_THROW(Tokens(folder.path()));
  for (const char* text : {"", "{}", "{\"tokens\": 3}", "{\"tokens\": [{\"name\": \"a\"}]}", "x"}) {
    std::ofstream(file) << text;
    EXPECT_THROW(Tokens(folder.path()), ConfigError) << text;
  }
}

TEST(TokenFile, ATokenThatCannotBeWrittenIsNeitherMadeNorRevoked) {
  TemporaryFolder folder;
  const auto data = folder.path() / "data";
  std::filesystem::create_directory(data);
  Tokens tokens(data);
  const TokenReply alice = tokens.create({"alice", "read", 0}, now);
  std::filesystem::rename(data, folder.path() / "gone");
  EXPECT_ANY_THROW(tokens.create({"bob", "read", 0}, now));
  EXPECT_FALSE(tokens.contains("bob"));
  EXPECT_ANY_THROW(tokens.revoke("alice"));
  EXPECT_FALSE(tokens.find(alice.token, now)->ended(now));
}

TEST(WrongTokens, EachAnswerWaitsLonger) {
  Attempts attempts({.pause = milliseconds(100), .pause_max = milliseconds(1000)});
  const auto pause = [&](const std::string& peer) {
    const auto time = attempts.enter(peer, milliseconds(1));
    attempts.leave(peer);
    return time.value_or(milliseconds(-1)).count();
  };
  EXPECT_EQ(pause("a"), 100);
  EXPECT_EQ(pause("a"), 200);
  EXPECT_EQ(pause("b"), 100) << "every peer for itself";
  EXPECT_EQ(pause("a"), 400);
  EXPECT_EQ(pause("a"), 800);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(pause("a"), 1000);
}

TEST(WrongTokens, FewAnswersWaitAtOnceAndPeersAreForgotten) {
  Attempts attempts({.waiting_max = 2, .memory = milliseconds(1000), .peers_max = 3});
  EXPECT_TRUE(attempts.enter("a", milliseconds(0)));
  EXPECT_TRUE(attempts.enter("a", milliseconds(0)));
  EXPECT_FALSE(attempts.enter("a", milliseconds(0)));
  attempts.leave("a");
  EXPECT_TRUE(attempts.enter("a", milliseconds(0)));
  for (int i = 0; i < 100; ++i) {
    const std::string peer = "b" + std::to_string(i);
    EXPECT_TRUE(attempts.enter(peer, milliseconds(i)));
    attempts.leave(peer);
    EXPECT_LE(attempts.peers(), 3u);
  }
  EXPECT_FALSE(attempts.enter("a", milliseconds(200))) << "whose answers wait is not forgotten";
  attempts.leave("a");
  attempts.leave("a");
  EXPECT_EQ(attempts.enter("a", milliseconds(2000)), milliseconds(100));
  EXPECT_EQ(attempts.peers(), 1u);
}

TEST(WrongTokens, AreSlowedOverHttpWhileOthersAreServed) {
  TemporaryFolder folder;
  RunningDaemon daemon({.data_dir = folder.path() / "data",
                        .net = {.attempts = {.pause = std::chrono::minutes(10),
                                             .pause_max = std::chrono::minutes(10),
                                             .waiting_max = 1}}});
  const Client client = daemon.client();
  const std::string request =
      request_text("GET", "/v1/jobs", {{"Authorization", "Bearer wrong"}}, {});
  Socket slow(client.port());
  slow.send(request);
  while (client.get("/metrics").body.find("pipewright_tokens_refused_total 1\n") ==
         std::string::npos) {
    std::this_thread::yield();
  }
  Socket second(client.port());
  second.send(request);
  const Reply refused = read_reply(second);
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(client.get("/v1/jobs").status, 200);
  EXPECT_EQ(client.send("GET", "/v1/jobs", "", {{"Authorization", ""}}).status, 401)
      << "no token is no attempt";
  EXPECT_THAT(client.get("/metrics").body, HasSubstr("pipewright_tokens_refused_total 3\n"));
}

}  // namespace
}  // namespace pipewright::test
