#include "daemon/net/openapi.hpp"

#include <algorithm>
#include <array>

#include "core/base/check.hpp"
#include "core/base/text.hpp"
#include "proto/codec/json_schema.hpp"
#include "proto/codec/provenance.hpp"

namespace pipewright {
namespace {

struct Words {
  std::string_view route;
  std::string_view summary;
  std::string_view reply;   // a message, or a media type
  std::vector<int> faults;  // besides those of every route
  std::string_view body = {};
  std::vector<int> successes = {200};
};

const std::vector<Words>& all_words() {
  static const std::vector<Words> words = {
      {"GET /", "The web page", "text/html", {404}},
      {"GET /assets/{name}", "What the web page loads", "application/octet-stream", {404}},
      {"GET /healthz", "The daemon lives", "Health", {}},
      {"GET /readyz", "A job would be taken now", "Health", {503}},
      {"GET /metrics", "Figures for Prometheus", "text/plain", {}},
      {"GET /v1/openapi.json", "This description", "application/json", {}},
      {"POST /v1/jobs",
       "Submit a job, as JobSpec or as a job file; 200 for one that was there already under the "
       "Idempotency-Key",
       "SubmitReply",
       {413, 415, 422, 503},
       "JobSpec",
       {200, 201}},
      {"GET /v1/jobs", "The jobs, newest first", "JobList", {}},
      {"GET /v1/jobs/{id}", "A job", "Job", {404}},
      {"DELETE /v1/jobs/{id}", "Delete a job of one's own that has ended", "Job", {404, 409, 503}},
      {"POST /v1/jobs/{id}/cancel", "End a job of one's own", "Job", {404, 409, 503}},
      {"GET /v1/jobs/{id}/events", "What happened to a job, in order", "EventList", {404}},
      {"GET /v1/jobs/{id}/runs", "The runs of a job, by number", "RunList", {404}},
      {"GET /v1/jobs/{id}/runs/{run}", "A run", "Run", {404}},
      {"GET /v1/jobs/{id}/runs/{run}/series",
       "A series of a run, in buckets with their least and largest values",
       "SeriesData",
       {404}},
      {"GET /v1/jobs/{id}/runs/{run}/files", "The files that a run left", "FileList", {404, 409}},
      {"GET /v1/jobs/{id}/runs/{run}/files/{name}",
       "A file that a run left",
       "application/octet-stream",
       {404, 409}},
      {"GET /v1/jobs/{id}/files", "The files of run 0", "FileList", {404, 409}},
      {"GET /v1/jobs/{id}/files/{name}", "A file of run 0", "application/octet-stream", {404, 409}},
      {"GET /v1/jobs/{id}/stream",
       "A WebSocket: events as they happen, each message a StreamFrame",
       "StreamFrame",
       {404}},
      {"GET /v1/pools", "The pools of ranks", "PoolList", {}},
      {"GET /v1/pools/attach", "A WebSocket of a pool: protobuf PoolFrame and DaemonFrame", "", {}},
      {"POST /v1/pools/{name}/drop",
       "Wait no longer for a pool that is away: its runs are queued again",
       "PoolInfo",
       {404, 409}},
      {"GET /v1/token", "The token that is shown", "TokenInfo", {}},
      {"GET /v1/tokens", "All tokens, without their secrets", "TokenList", {}},
      {"POST /v1/tokens",
       "Make a token",
       "TokenReply",
       {409, 413, 415, 503},
       "TokenRequest",
       {201}},
      {"DELETE /v1/tokens/{name}", "End a token", "TokenInfo", {404, 503}},
  };
  return words;
}

Value map(Value::Map entries) {
  return Value(std::move(entries));
}

Value reference(std::string_view message) {
  return map({{"$ref", "#/components/schemas/" + std::string(message)}});
}

Value content(std::string_view message_or_type) {
  if (message_or_type.find('/') != std::string_view::npos) {
    return map({{std::string(message_or_type), Value::map()}});
  }
  return map({{"application/json", map({{"schema", reference(message_or_type)}})},
              {"application/x-protobuf",
               map({{"schema", map({{"type", "string"}, {"format", "binary"}})}})}});
}

Value parameter(const std::string& name, const char* where) {
  static constexpr std::array<std::string_view, 7> whole{"id",    "run",    "from",   "to",
                                                         "limit", "before", "buckets"};
  const bool is_whole = std::find(whole.begin(), whole.end(), name) != whole.end();
  return map({{"name", name},
              {"in", where},
              {"required", std::string_view(where) == "path"},
              {"schema", map({{"type", is_whole ? "integer" : "string"}})}});
}

Value parameters_of(const RouteInfo& route) {
  Value all = Value::list();
  for (const std::string_view part : split(route.path, '/')) {
    if (!part.starts_with('{')) continue;
    all.as_list().push_back(parameter(std::string(part.substr(1, part.size() - 2)), "path"));
  }
  for (const std::string& name : route.parameters) {
    all.as_list().push_back(parameter(name, "query"));
  }
  return all;
}

Value responses_of(const RouteInfo& route, const Words& words) {
  std::vector<int> faults = words.faults;
  faults.insert(faults.end(), {400, 500});
  if (!route.role.empty()) faults.insert(faults.end(), {401, 429});
  if (!route.role.empty() && route.role != "any") faults.push_back(403);
  if (route.websocket) faults.push_back(426);
  std::sort(faults.begin(), faults.end());
  Value responses = Value::map();
  if (route.websocket) {
    responses.set("101", map({{"description", std::string(words.summary)}}));
  } else {
    for (const int status : words.successes) {
      responses.set(std::to_string(status), map({{"description", std::string(words.summary)},
                                                 {"content", content(words.reply)}}));
    }
  }
  for (const int status : faults) {
    responses.set(std::to_string(status),
                  map({{"description", "What was wrong"}, {"content", content("ErrorReply")}}));
  }
  return responses;
}

Value operation_of(const RouteInfo& route, const Words& words) {
  Value operation = map({{"summary", std::string(words.summary)},
                         {"parameters", parameters_of(route)},
                         {"responses", responses_of(route, words)}});
  if (!words.body.empty()) {
    operation.set("requestBody", map({{"required", true}, {"content", content(words.body)}}));
  }
  if (route.role.empty()) {
    operation.set("security", Value::list());
  } else {
    operation.set("x-role", route.role);
  }
  return operation;
}

}  // namespace

Value openapi(std::span<const RouteInfo> routes) {
  Value paths = Value::map();
  std::vector<std::string_view> messages{"ErrorReply"};
  for (const RouteInfo& route : routes) {
    const std::string name = route.method + " " + route.path;
    const auto words = std::find_if(all_words().begin(), all_words().end(),
                                    [&](const Words& known) { return known.route == name; });
    PW_CHECK(words != all_words().end(), "daemon/net/openapi.cpp has no words for " << name);
    if (!paths.has(route.path)) paths.set(route.path, Value::map());
    std::string method = route.method;
    std::transform(method.begin(), method.end(), method.begin(),
                   [](unsigned char c) { return static_cast<char>(c - 'A' + 'a'); });
    paths.find(route.path)->set(method, operation_of(route, *words));
    for (const std::string_view message : {words->reply, words->body}) {
      const bool is_message = !message.empty() && message.find('/') == std::string_view::npos;
      if (is_message) messages.push_back(message);
    }
  }
  const Value bearer = map({{"type", "http"}, {"scheme", "bearer"}});
  return map({{"openapi", "3.1.0"},
              {"info", map({{"title", "pipewrightd"}, {"version", program_version()}})},
              {"security", Value(Value::List{map({{"token", Value::list()}})})},
              {"paths", paths},
              {"components", map({{"securitySchemes", map({{"token", bearer}})},
                                  {"schemas", json_schemas(messages)}})}});
}

}  // namespace pipewright
