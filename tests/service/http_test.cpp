// Requests and their replies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/service/support.hpp"

namespace pipewright::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct HttpTest : testing::Test {
  TemporaryFolder folder;
  RunningDaemon daemon{{.data_dir = folder.path() / "data"}};
  Client client = daemon.client();
};

TEST_F(HttpTest, HealthNeedsNoToken) {
  Socket socket(client.port());
  socket.send(request_text("GET", "/healthz", {}, ""));
  const Reply reply = read_reply(socket);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.headers.at("content-type"), "application/json");
  EXPECT_EQ(decode<Health>(reply.body, WireFormat::json).status, "ok");
}

TEST_F(HttpTest, AJobIsTakenInEveryForm) {
  const std::string yaml =
      "objective: {quadratic: {generate: {kind: tridiagonal, examples: 16, parameters: 16},"
      " batch_size: 4}}\n"
      "schedule: {pipedream: {stages: 2, microbatches: 8}}\n"
      "optimizer: {sgd: {learning_rate: 0.1}}\n";
  const Value job = small_job(2);
  const std::vector<std::pair<std::string, std::string>> bodies = {
      {"application/x-protobuf", encode(JobSpecBody{job}, WireFormat::protobuf)},
      {"application/json", encode(JobSpecBody{job}, WireFormat::json)},
      {"application/json; charset=utf-8", encode(JobSpecBody{job}, WireFormat::json)},
      {"application/yaml", yaml}};
  std::uint32_t id = 0;
  for (const auto& [type, body] : bodies) {
    const Reply reply = client.send("POST", "/v1/jobs", body, {{"Content-Type", type}});
    ASSERT_EQ(reply.status, 201) << type << ": " << reply.body;
    EXPECT_EQ(decode<SubmitReply>(reply.body, WireFormat::json).id, ++id) << type;
    const Job shown = show(client, id);
    EXPECT_EQ(shown.state, JobState::queued);
    EXPECT_EQ(find_path(shown.spec, "schedule.pipedream.stages")->as_integer(), 2) << type;
  }
}

TEST_F(HttpTest, AcceptChoosesTheFormOfTheReply) {
  const std::uint32_t id = submit(client);
  const std::string target = "/v1/jobs/" + std::to_string(id);
  const Reply protobuf = client.get(target, {{"Accept", "application/x-protobuf"}});
  EXPECT_EQ(protobuf.headers.at("content-type"), "application/x-protobuf");
  EXPECT_EQ(decode<Job>(protobuf.body, WireFormat::protobuf).id, id);
  const Reply json = client.get(target, {{"Accept", "text/html, application/json, */*"}});
  EXPECT_EQ(json.headers.at("content-type"), "application/json");
  EXPECT_EQ(decode<Job>(json.body, WireFormat::json).id, id);
  const Reply fault = client.get("/v1/jobs/99", {{"Accept", "application/x-protobuf"}});
  EXPECT_EQ(fault.status, 404);
  EXPECT_THAT(decode<ErrorReply>(fault.body, WireFormat::protobuf).error, HasSubstr("no job 99"));
}

TEST_F(HttpTest, ListsArePaged) {
  for (int i = 0; i < 5; ++i) submit(client);
  std::vector<std::uint32_t> ids;
  std::uint32_t before = 0;
  do {
    const Reply reply = client.get("/v1/jobs?limit=2&before=" + std::to_string(before));
    ASSERT_EQ(reply.status, 200) << reply.body;
    const JobList page = decode<JobList>(reply.body, WireFormat::json);
    for (const Job& job : page.jobs) ids.push_back(job.id);
    before = page.next_before;
  } while (before != 0);
  EXPECT_THAT(ids, ElementsAre(5, 4, 3, 2, 1));
}

TEST_F(HttpTest, ListsCanBeOfOneState) {
  for (int i = 0; i < 3; ++i) submit(client);
  client.send("POST", "/v1/jobs/2/cancel");
  const auto ids_of = [&](const std::string& state) {
    std::vector<std::uint32_t> ids;
    const Reply reply = client.get("/v1/jobs?state=" + state);
    for (const Job& job : decode<JobList>(reply.body, WireFormat::json).jobs) {
      ids.push_back(job.id);
    }
    return ids;
  };
  EXPECT_THAT(ids_of("QUEUED"), ElementsAre(3, 1));
  EXPECT_THAT(ids_of("CANCELLED"), ElementsAre(2));
}

TEST_F(HttpTest, AQueuedJobIsCancelledOnce) {
  const std::uint32_t id = submit(client);
  const std::string target = "/v1/jobs/" + std::to_string(id) + "/cancel";
  const Reply first = client.send("POST", target);
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(decode<Job>(first.body, WireFormat::json).state, JobState::cancelled);
  const Reply second = client.send("POST", target);
  EXPECT_EQ(second.status, 409);
  EXPECT_THAT(second.body, HasSubstr("CANCELLED"));
  EXPECT_EQ(client.send("POST", "/v1/jobs/77/cancel").status, 404);
}

TEST_F(HttpTest, EventsBeginWhereTheyAreAskedFor) {
  FakePool pool(client);
  const std::uint32_t id = submit(client);
  pool.run(pool.expect<StartRun>(), 10);
  wait_for(client, id, JobState::succeeded);
  const EventList all = events(client, id);
  // QUEUED, STARTING, RUNNING, 10 points, SUCCEEDED
  ASSERT_EQ(all.events.size(), 14u);
  expect_numbered(all.events, 1);
  EXPECT_EQ(all.next_sequence, 15u);
  const EventList some = events(client, id, "?from=4&limit=2");
  ASSERT_EQ(some.events.size(), 2u);
  expect_numbered(some.events, 4);
  EXPECT_EQ(some.next_sequence, 6u);
  EXPECT_EQ(events(client, id, "?kind=point").events.size(), 10u);
  EXPECT_EQ(events(client, id, "?kind=state").events.size(), 4u);
  EXPECT_EQ(events(client, id, "?kind=log").events.size(), 0u);
  EXPECT_EQ(events(client, id, "?from=15").events.size(), 0u);
}

TEST_F(HttpTest, FilesAreThereWhenTheJobHasEnded) {
  FakePool pool(client);
  const std::uint32_t id = submit(client);
  const std::string target = "/v1/jobs/" + std::to_string(id) + "/files";
  EXPECT_EQ(client.get(target).status, 409);
  EXPECT_EQ(client.get(target + "/weights.npy").status, 409);
  const StartRun start = pool.expect<StartRun>();
  pool.send(RunStarted{start.run});
  std::string large(3'000'000, 'w');
  large[1] = '\0';
  for (std::size_t at = 0; at < large.size(); at += 1'000'000) {
    pool.send(RunFileChunk{start.run, "weights.npy", at, large.substr(at, 1'000'000),
                           at + 1'000'000 == large.size()});
  }
  pool.send_file(start.run, "objective.csv", "tick,updates,value\n");
  pool.end(start.run);
  wait_for(client, id, JobState::succeeded);
  const FileList list = decode<FileList>(client.get(target).body, WireFormat::json);
  ASSERT_EQ(list.files.size(), 2u);
  EXPECT_EQ(list.files[0].name, "objective.csv");
  EXPECT_EQ(list.files[1].bytes, large.size());
  const Reply file = client.get(target + "/weights.npy");
  EXPECT_EQ(file.headers.at("content-type"), "application/octet-stream");
  EXPECT_TRUE(file.body == large);
  EXPECT_EQ(client.get(target + "/nothing.csv").status, 404);
  EXPECT_EQ(client.get(target + "/..%2f..%2ftoken").status, 404);
}

TEST_F(HttpTest, AConnectionServesManyRequests) {
  Socket socket(client.port());
  const Headers headers{{"Authorization", "Bearer " + client.token()}};
  for (int i = 0; i < 3; ++i) {
    socket.send(request_text("GET", "/v1/pools", headers, ""));
    EXPECT_EQ(read_reply(socket).status, 200);
    socket.send(request_text("GET", "/v1/jobs/1", headers, ""));
    EXPECT_EQ(read_reply(socket).status, 404) << "a refusal does not end it";
  }
  socket.send(request_text("GET", "/healthz", {{"Connection", "close"}}, ""));
  EXPECT_EQ(read_reply(socket).status, 200);
  EXPECT_TRUE(socket.at_end());
}

TEST_F(HttpTest, TheSchemeOfATokenHasNoCase) {
  for (const char* scheme : {"bearer ", "BEARER "}) {
    EXPECT_EQ(
        client.send("GET", "/v1/jobs", "", {{"Authorization", scheme + client.token()}}).status,
        200)
        << scheme;
  }
  EXPECT_EQ(
      client.send("GET", "/v1/jobs", "", {{"Authorization", "Basic " + client.token()}}).status,
      401);
}

TEST_F(HttpTest, PipelinedRequestsAreAnsweredInOrder) {
  Socket socket(client.port());
  const Headers headers{{"Authorization", "Bearer " + client.token()}};
  socket.send(request_text("GET", "/healthz", {}, "") +
              request_text("GET", "/v1/jobs/5", headers, "") +
              request_text("GET", "/v1/jobs", headers, ""));
  EXPECT_EQ(read_reply(socket).status, 200);
  EXPECT_EQ(read_reply(socket).status, 404);
  EXPECT_EQ(read_reply(socket).status, 200);
}

}  // namespace
}  // namespace pipewright::test
