// GET /v1/openapi.json against the server: its routes are there and no others, need the roles that
// it names, and answer as it says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/codec/json.hpp"
#include "proto/codec/token.hpp"
#include "tests/service/support.hpp"

namespace pipewright::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// Why a value does not fit a schema of those that json_schemas() makes; empty when it does.
std::string misfit(const Value& value, const Value& schema, const Value& schemas,
                   const std::string& where) {
  if (const Value* name = schema.find("$ref")) {
    constexpr std::string_view prefix = "#/components/schemas/";
    return misfit(value, schemas.at(name->as_text().substr(prefix.size())), schemas, where);
  }
  if (const Value* choices = schema.find("anyOf")) {
    std::string why;
    for (const Value& choice : choices->as_list()) {
      why = misfit(value, choice, schemas, where);
      if (why.empty()) return why;
    }
    return why;
  }
  if (const Value* names = schema.find("enum")) {
    for (const Value& name : names->as_list()) {
      if (name == value) return {};
    }
    return where + ": is none of the names";
  }
  const Value* type = schema.find("type");
  if (type == nullptr) return {};
  const std::string& name = type->as_text();
  const bool fits = name == "object"    ? value.is_map()
                    : name == "array"   ? value.is_list()
                    : name == "integer" ? value.is_integer()
                    : name == "number"  ? value.is_number()
                    : name == "boolean" ? value.is_bool()
                                        : value.is_text();
  if (!fits) return where + ": is " + std::string(value.type_name()) + " and no " + name;
  if (name == "array") {
    for (const Value& item : value.as_list()) {
      const std::string why = misfit(item, schema.at("items"), schemas, where + "[]");
      if (!why.empty()) return why;
    }
  }
  const Value* properties = schema.find("properties");
  if (name != "object" || properties == nullptr) return {};
  for (const auto& [key, inner] : value.as_map()) {
    const Value* known = properties->find(key);
    if (known == nullptr) return where + "." + key + ": is not in the schema";
    const std::string why = misfit(inner, *known, schemas, where + "." + key);
    if (!why.empty()) return why;
  }
  return {};
}

struct OpenApiTest : testing::Test {
  TemporaryFolder folder;
  RunningDaemon daemon{{.data_dir = folder.path() / "data",
                        .net = {.attempts = {.pause = std::chrono::milliseconds(0)}}}};
  Client client = daemon.client();
  Value api =
      value_from_json(client.send("GET", "/v1/openapi.json", "", {{"Authorization", ""}}).body);
  std::map<std::string, std::set<int>> seen;  // statuses by operation

  const Value& schemas() const { return api.at("components").at("schemas"); }

  /// Asks, and expects an answer that the description has.
  Reply ask(const std::string& method, const std::string& path, const std::string& target,
            const Client& as, const std::string& body = {}, Headers headers = {}) {
    std::string lower = method;
    for (char& c : lower) c = static_cast<char>(tolower(c));
    const Reply reply = as.send(method, target, body, std::move(headers));
    const std::string name = method + " " + target;
    seen[method + " " + path].insert(reply.status);
    const Value& responses = api.at("paths").at(path).at(lower).at("responses");
    const Value* response = responses.find(std::to_string(reply.status));
    EXPECT_NE(response, nullptr) << name << " answers with " << reply.status << " " << reply.body;
    if (response == nullptr || !response->has("content")) return reply;
    const std::string type = reply.headers.at("content-type");
    const Value* media = response->at("content").find(type.substr(0, type.find(';')));
    EXPECT_NE(media, nullptr) << name << " answers with " << type;
    if (media != nullptr && media->has("schema")) {
      EXPECT_EQ(misfit(value_from_json(reply.body), media->at("schema"), schemas(), "body"), "")
          << name << ": " << reply.body;
    }
    return reply;
  }
  Reply ask(const std::string& method, const std::string& path, const std::string& target) {
    return ask(method, path, target, client);
  }
};

std::string filled_in(std::string path) {
  for (const auto& [name, value] :
       {std::pair<std::string, std::string>{"{id}", "1"}, {"{run}", "0"}, {"{name}", "x"}}) {
    const std::size_t at = path.find(name);
    if (at != std::string::npos) path.replace(at, name.size(), value);
  }
  return path;
}

TEST_F(OpenApiTest, HasTheRoutesOfTheServerAndTheirMethods) {
  ASSERT_EQ(api.at("openapi").as_text(), "3.1.0");
  EXPECT_GE(api.at("paths").as_map().size(), 20u);
  submit(client);
  for (const auto& [path, operations] : api.at("paths").as_map()) {
    for (const std::string method : {"GET", "POST", "PUT", "PATCH", "DELETE"}) {
      std::string lower = method;
      for (char& c : lower) c = static_cast<char>(tolower(c));
      const Reply reply = client.send(method, filled_in(path));
      const bool known = operations.has(lower);
      EXPECT_EQ(reply.status != 405, known) << method << " " << path << " " << reply.status;
      if (reply.status == 404) {
        EXPECT_THAT(reply.body, Not(HasSubstr("there is nothing here"))) << path;
      }
    }
  }
}

TEST_F(OpenApiTest, NamesTheRolesThatTheServerWants) {
  std::map<std::string, Client> clients;
  for (const std::string role : {"read", "submit", "pool", "admin"}) {
    const Reply made = client.send("POST", "/v1/tokens",
                                   encode(TokenRequest{"a-" + role, role, 0}, WireFormat::json),
                                   {{"Content-Type", "application/json"}});
    clients.emplace(role,
                    Client(client.port(), decode<TokenReply>(made.body, WireFormat::json).token));
  }
  const std::map<std::string, std::set<std::string>> who_has{
      {"any", {"read", "submit", "pool", "admin"}},
      {"read", {"read", "submit", "admin"}},
      {"submit", {"submit", "admin"}},
      {"pool", {"pool", "admin"}},
      {"admin", {"admin"}}};
  submit(client);
  for (const auto& [path, operations] : api.at("paths").as_map()) {
    for (const auto& [method, operation] : operations.as_map()) {
      std::string upper = method;
      for (char& c : upper) c = static_cast<char>(toupper(c));
      const std::string name = upper + " " + path;
      const Reply open = ask(upper, path, filled_in(path), client, "", {{"Authorization", ""}});
      EXPECT_EQ(open.status == 401, operation.has("x-role")) << name;
      if (!operation.has("x-role")) continue;
      const std::set<std::string>& allowed = who_has.at(operation.at("x-role").as_text());
      for (const auto& [role, as] : clients) {
        const Reply reply = ask(upper, path, filled_in(path), as);
        EXPECT_EQ(reply.status == 401, false) << name;
        // A submitter may not end the job, which is the admin's: that is refused in other words.
        const bool lacks_role =
            reply.body.find("this needs a token with the role") != std::string::npos;
        EXPECT_EQ(lacks_role, !allowed.contains(role)) << name << " as " << role << reply.body;
      }
    }
  }
}

TEST_F(OpenApiTest, AnswersAreAsDescribed) {
  const Headers json{{"Content-Type", "application/json"}};
  const std::string job = encode(JobSpecBody{small_job()}, WireFormat::json);
  Headers with_key = json;
  with_key.emplace_back("Idempotency-Key", "k");
  EXPECT_EQ(ask("POST", "/v1/jobs", "/v1/jobs", client, job, with_key).status, 201);
  EXPECT_EQ(ask("POST", "/v1/jobs", "/v1/jobs", client, job, with_key).status, 200);
  const std::string other = encode(JobSpecBody{small_job(1, "other")}, WireFormat::json);
  EXPECT_EQ(ask("POST", "/v1/jobs", "/v1/jobs", client, other, with_key).status, 422);
  EXPECT_EQ(ask("POST", "/v1/jobs", "/v1/jobs", client, "{}", json).status, 400);
  EXPECT_EQ(ask("POST", "/v1/jobs", "/v1/jobs", client, "x", {{"Content-Type", "a/b"}}).status,
            415);
  EXPECT_EQ(ask("GET", "/v1/jobs/{id}/files", "/v1/jobs/1/files").status, 409);
  FakePool pool(client);
  const StartRun start = pool.expect<StartRun>();
  pool.send(RunLog{start.run, {Severity::warning, "slow"}});
  pool.run(start, 5);
  wait_for(client, 1, JobState::succeeded);
  const std::vector<std::pair<std::string, std::string>> gets = {
      {"/healthz", ""},
      {"/readyz", ""},
      {"/metrics", ""},
      {"/v1/openapi.json", ""},
      {"/v1/jobs", "?limit=1"},
      {"/v1/jobs/{id}", ""},
      {"/v1/jobs/{id}/events", ""},
      {"/v1/jobs/{id}/runs", ""},
      {"/v1/jobs/{id}/runs/{run}", ""},
      {"/v1/jobs/{id}/runs/{run}/files", ""},
      {"/v1/jobs/{id}/files", ""},
      {"/v1/pools", ""},
      {"/v1/token", ""},
      {"/v1/tokens", ""}};
  for (const auto& [path, query] : gets) {
    EXPECT_EQ(ask("GET", path, filled_in(path) + query).status, 200) << path;
  }
  for (const std::string path :
       {"/v1/jobs/{id}/runs/{run}/files/{name}", "/v1/jobs/{id}/files/{name}"}) {
    EXPECT_EQ(ask("GET", path, filled_in(path)).status, 404);
    std::string there = filled_in(path);
    there.replace(there.size() - 1, 1, "objective.csv");
    EXPECT_EQ(ask("GET", path, there).status, 200);
  }
  EXPECT_EQ(ask("GET", "/v1/jobs/{id}", "/v1/jobs/99").status, 404);
  EXPECT_EQ(ask("GET", "/v1/jobs", "/v1/jobs?limit=0").status, 400);
  EXPECT_EQ(ask("POST", "/v1/jobs/{id}/cancel", "/v1/jobs/1/cancel").status, 409);
  EXPECT_EQ(ask("DELETE", "/v1/jobs/{id}", "/v1/jobs/1").status, 200);
  EXPECT_EQ(ask("POST", "/v1/pools/{name}/drop", "/v1/pools/nobody/drop").status, 404);
  const std::string token = encode(TokenRequest{"alice", "read", 0}, WireFormat::json);
  EXPECT_EQ(ask("POST", "/v1/tokens", "/v1/tokens", client, token, json).status, 201);
  EXPECT_EQ(ask("POST", "/v1/tokens", "/v1/tokens", client, token, json).status, 409);
  EXPECT_EQ(ask("DELETE", "/v1/tokens/{name}", "/v1/tokens/alice").status, 200);
}

TEST_F(OpenApiTest, StreamsSendWhatIsDescribed) {
  const std::uint32_t id = submit(client);
  FakePool pool(client);
  pool.run(pool.expect<StartRun>(), 5);
  wait_for(client, id, JobState::succeeded);
  WebSocketClient stream(client.port(), "/v1/jobs/1/stream?format=json", client.token());
  ASSERT_EQ(stream.reply().status, 101);
  int frames = 0;
  while (const auto frame = stream.receive()) {
    ++frames;
    EXPECT_EQ(misfit(value_from_json(*frame), schemas().at("StreamFrame"), schemas(), "frame"), "")
        << *frame;
  }
  EXPECT_GE(frames, 3) << "events, live_from_here, ended";
}

}  // namespace
}  // namespace pipewright::test
