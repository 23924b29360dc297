// What a client must not send: each gets its 4xx, and the daemon goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/service/support.hpp"

namespace pipewright::test {
namespace {

using testing::HasSubstr;

struct HttpFaults : testing::Test {
  TemporaryFolder folder;
  RunningDaemon daemon{{.data_dir = folder.path() / "data",
                        .net = {.attempts = {.pause = std::chrono::milliseconds(0)}}}};
  Client client = daemon.client();

  void TearDown() override { EXPECT_EQ(client.get("/healthz").status, 200) << "it goes on"; }

  ErrorReply fault(const Reply& reply, int status) {
    EXPECT_EQ(reply.status, status) << reply.body;
    const ErrorReply error = decode<ErrorReply>(reply.body, WireFormat::json);
    EXPECT_NE(error.error, "");
    return error;
  }
  Reply raw(const std::string& bytes) {
    Socket socket(client.port());
    socket.send(bytes);
    return read_reply(socket);
  }
  Reply post(const std::string& type, const std::string& body) {
    return client.send("POST", "/v1/jobs", body, {{"Content-Type", type}});
  }
};

TEST_F(HttpFaults, EveryRouteButHealthNeedsTheToken) {
  submit(client);
  const std::vector<std::pair<std::string, std::string>> routes = {
      {"POST", "/v1/jobs"},          {"GET", "/v1/jobs"},          {"GET", "/v1/jobs/1"},
      {"POST", "/v1/jobs/1/cancel"}, {"GET", "/v1/jobs/1/events"}, {"GET", "/v1/jobs/1/files"},
      {"GET", "/v1/jobs/1/files/a"}, {"GET", "/v1/jobs/1/stream"}, {"GET", "/v1/pools"},
      {"GET", "/v1/pools/attach"},   {"GET", "/nothing"},          {"DELETE", "/v1/jobs/1"}};
  for (const auto& [method, target] : routes) {
    for (const std::string& token :
         {std::string(), std::string("Bearer "), "Bearer " + std::string(64, '0'),
          "Bearer " + client.token().substr(1), "Basic " + client.token(), client.token()}) {
      const Reply reply = client.send(method, target, "", {{"Authorization", token}});
      fault(reply, 401);
      EXPECT_EQ(reply.headers.at("www-authenticate"), "Bearer");
    }
  }
  EXPECT_EQ(show(client, 1).state, JobState::queued) << "the cancel was not heard";
}

TEST_F(HttpFaults, ATokenInASubprotocolIsForWebSocketsOnly) {
  const Headers offer{{"Sec-WebSocket-Protocol", "pipewright.v1, bearer." + client.token()}};
  Headers request = offer;
  request.push_back({"Authorization", ""});
  fault(client.send("GET", "/v1/pools", "", request), 401);
  submit(client);
  const std::string target = "/v1/jobs/1/stream";
  WebSocketClient stream(client.port(), target, offer);
  EXPECT_EQ(stream.reply().status, 101);
  EXPECT_EQ(stream.reply().headers.at("sec-websocket-protocol"), "pipewright.v1");
  WebSocketClient wrong(client.port(), target,
                        Headers{{"Sec-WebSocket-Protocol", "pipewright.v1, bearer.123"}});
  EXPECT_EQ(wrong.reply().status, 401);
  WebSocketClient none(client.port(), target, Headers{{"Sec-WebSocket-Protocol", "pipewright.v1"}});
  EXPECT_EQ(none.reply().status, 401);
}

TEST_F(HttpFaults, ATokenInTheQueryIsOfNoUse) {
  submit(client);
  const std::string query = "?token=" + client.token();
  WebSocketClient stream(client.port(), "/v1/jobs/1/stream" + query, Headers{});
  EXPECT_EQ(stream.reply().status, 401);
  fault(client.send("GET", "/v1/pools" + query, "", {{"Authorization", ""}}), 401);
}

TEST_F(HttpFaults, ABodyWithoutTheTokenIsNotRead) {
  Socket socket(client.port());
  socket.send("POST /v1/jobs HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
  fault(read_reply(socket), 401);
}

TEST_F(HttpFaults, UnknownRoutesAndMethods) {
  fault(client.get("/v1/job"), 404);
  fault(client.get("/v1/jobs/"), 404);
  fault(client.get("/v1/jobs/abc"), 404);
  fault(client.get("/v1/jobs/0"), 404);
  fault(client.get("/v1/jobs/99999999999999999999"), 404);
  fault(client.get("/v1/jobs/1/more"), 404);
  fault(client.get("/v1/jobs/1/events"), 404);
  fault(client.get("/v1/jobs/1/files"), 404);
  const Reply wrong = client.send("DELETE", "/v1/jobs");
  fault(wrong, 405);
  EXPECT_EQ(wrong.headers.at("allow"), "POST, GET");
  fault(client.send("POST", "/healthz"), 405);
  fault(client.send("PUT", "/v1/jobs/1/cancel", "x"), 405);
}

TEST_F(HttpFaults, BadParameters) {
  submit(client);
  for (const char* target :
       {"/v1/jobs?limit=0", "/v1/jobs?limit=1001", "/v1/jobs?limit=x",
        "/v1/jobs?limit=", "/v1/jobs?before=-1", "/v1/jobs?state=running",
        "/v1/jobs/1/events?from=0", "/v1/jobs/1/events?limit=10001", "/v1/jobs/1/events?kind=curve",
        "/v1/jobs?limit=%zz", "/v1/jobs?limit=%4"}) {
    fault(client.get(target), 400);
  }
  EXPECT_THAT(fault(client.get("/v1/jobs?limits=5"), 400).error, HasSubstr("did you mean 'limit'"));
  EXPECT_THAT(fault(client.get("/v1/jobs?state=DONE"), 400).error, HasSubstr("SUCCEEDED"));
}

TEST_F(HttpFaults, MalformedBodies) {
  fault(post("application/x-protobuf", "\xff\xff\xff\xff"), 400);
  fault(post("application/json", "{\"objective\": "), 400);
  fault(post("application/json", "[1, 2]"), 400);
  fault(post("application/json", "{\"no_such_field\": 1}"), 400);
  fault(post("application/yaml", "objective: {quadratic: ["), 400);
  fault(post("application/yaml", "a: 1\na: 2\n"), 400);
  fault(post("application/yaml", ""), 400);
  fault(post("application/json", ""), 400);
  fault(post("application/json", std::string(100'000, '[')), 400);
}

TEST_F(HttpFaults, AnUnknownContentType) {
  EXPECT_THAT(fault(post("text/plain", "x"), 415).error, HasSubstr("application/yaml"));
  fault(client.send("POST", "/v1/jobs", "x"), 415);
}

TEST_F(HttpFaults, ABadParameterOfAJobIsNamedByItsPath) {
  Value job = small_job();
  set_path(job, "optimizer.sgd.learning_rate", "fast");
  const ErrorReply error =
      fault(post("application/json", encode(JobSpecBody{job}, WireFormat::json)), 400);
  EXPECT_EQ(error.path, "optimizer.sgd.learning_rate");
  EXPECT_THAT(error.error, HasSubstr("fast"));
}

TEST_F(HttpFaults, ABadKeyOfAYamlJobIsNamedByItsLine) {
  const std::string yaml =
      "objective: {quadratic: {generate: {kind: tridiagonal, examples: 16, parameters: 16}, "
      "batch_size: 4}}\n"
      "schedule: {pipedream: {stages: 2, microbatches: 8}}\n"
      "optimizer:\n  sgd: {learning_rat: 0.1}\n";
  const ErrorReply error = fault(post("application/yaml", yaml), 400);
  EXPECT_THAT(error.error, HasSubstr("learning_rat"));
  EXPECT_THAT(error.error, HasSubstr(":4"));
}

TEST_F(HttpFaults, RelativePathsAreRefused) {
  const std::string yaml =
      "objective: {logistic: {data: {libsvm: a9a.libsvm}, batch_size: 64}}\n"
      "schedule: {pipedream: {stages: 2, microbatches: 8}}\n"
      "optimizer: {sgd: {learning_rate: 0.1}}\n";
  EXPECT_THAT(fault(post("application/yaml", yaml), 400).error, HasSubstr("relative path"));
}

TEST_F(HttpFaults, ATooLargeBody) {
  fault(post("application/json", std::string((8u << 20) + 1, ' ')), 413);
  EXPECT_EQ(post("application/json", std::string(8u << 20, ' ')).status, 400) << "just within";
}

TEST_F(HttpFaults, ATooLargeHeader) {
  const Reply reply = client.get("/healthz", {{"X-Long", std::string(9000, 'a')}});
  fault(reply, 431);
}

TEST_F(HttpFaults, WhatIsNotHttp) {
  fault(raw("GARBAGE\r\n\r\n"), 400);
  fault(raw(std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 15)), 400);
  fault(raw("GET /healthz HTTP/1.1\r\nContent-Length: abc\r\n\r\n"), 400);
  fault(raw("GET healthz HTTP/1.1\r\n\r\n"), 400);
}

TEST_F(HttpFaults, AStreamWithoutAnUpgrade) {
  submit(client);
  fault(client.get("/v1/jobs/1/stream"), 426);
  fault(client.get("/v1/pools/attach"), 426);
}

TEST_F(HttpFaults, AnUpgradeOfWhatIsNoStream) {
  WebSocketClient other(client.port(), "/v1/jobs", client.token());
  EXPECT_EQ(other.reply().status, 200) << "the upgrade is not taken up";
  EXPECT_EQ(WebSocketClient(client.port(), "/v1/jobs/9/stream", client.token()).reply().status,
            404);
  submit(client);
  for (const char* parameters : {"?from=0", "?from=3", "?format=xml", "?form=json"}) {
    WebSocketClient bad(client.port(), std::string("/v1/jobs/1/stream") + parameters,
                        client.token());
    EXPECT_EQ(bad.reply().status, 400) << parameters;
  }
}

TEST_F(HttpFaults, ConnectionsThatLeaveInTheMiddle) {
  for (const char* part : {"", "GET", "GET /healthz HTTP/1.1\r\nHost:",
                           "POST /v1/jobs HTTP/1.1\r\n"
                           "Content-Length: 10\r\n\r\nabc"}) {
    Socket socket(client.port());
    socket.send(part);
  }
}

TEST(HttpLimits, ConnectionsAreBounded) {
  TemporaryFolder folder;
  NetLimits limits;
  limits.connections_max = 2;
  RunningDaemon daemon({.data_dir = folder.path() / "data", .net = limits});
  const std::string request =
      request_text("GET", "/v1/jobs", {{"Authorization", "Bearer " + daemon.token()}}, "");
  Socket first(daemon.port()), second(daemon.port());
  first.send(request);
  EXPECT_EQ(read_reply(first).status, 200);
  second.send(request);
  EXPECT_EQ(read_reply(second).status, 200);
  Socket third(daemon.port());
  EXPECT_EQ(read_reply(third).status, 503);
  first.send(request);
  EXPECT_EQ(read_reply(first).status, 200) << "the others are served";
}

TEST(HttpLimits, WhoShowsNoTokenKeepsNobodyOut) {
  TemporaryFolder folder;
  NetLimits limits;
  limits.connections_max = 4;
  RunningDaemon daemon({.data_dir = folder.path() / "data", .net = limits});
  const Client client = daemon.client();
  const std::uint32_t id = submit(client);
  Watcher watcher(client, id);
  std::vector<Socket> idle;
  for (int i = 0; i < 20; ++i) {
    idle.emplace_back(daemon.port());
    idle.back().send("GET /v1/jobs HTTP/1.1\r\n");  // and no more
    EXPECT_EQ(client.get("/v1/jobs").status, 200);
  }
  EXPECT_TRUE(idle.front().at_end()) << "the oldest goes first";
  FakePool pool(client);
  pool.run(pool.expect<StartRun>(), 5);
  EXPECT_TRUE(watcher.until<JobEnded>()) << "those with a token stay";
}

TEST(HttpLimits, AnIdleConnectionIsClosed) {
  TemporaryFolder folder;
  NetLimits limits;
  limits.idle_max = std::chrono::milliseconds(100);
  RunningDaemon daemon({.data_dir = folder.path() / "data", .net = limits});
  Socket socket(daemon.port());
  socket.send("GET /healthz HTTP/1.1\r\n");  // and no more
  EXPECT_TRUE(socket.at_end());
}

TEST(HttpLimits, AFullQueueIsA503) {
  TemporaryFolder folder;
  ServiceLimits limits;
  limits.queue.jobs_max = 1;
  RunningDaemon daemon({.data_dir = folder.path() / "data", .service = limits});
  const Client client = daemon.client();
  submit(client);
  const Reply reply =
      client.send("POST", "/v1/jobs", encode(JobSpecBody{small_job()}, WireFormat::json),
                  {{"Content-Type", "application/json"}});
  EXPECT_EQ(reply.status, 503);
  client.send("POST", "/v1/jobs/1/cancel");
  EXPECT_EQ(submit(client), 2u);
}

}  // namespace
}  // namespace pipewright::test
