#include "daemon/net/api.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "core/base/text.hpp"
#include "daemon/log.hpp"
#include "daemon/net/api_reply.hpp"
#include "daemon/net/http_fault.hpp"
#include "daemon/net/openapi.hpp"
#include "proto/codec/provenance.hpp"

namespace pipewright {
namespace {

std::optional<std::int64_t> number(const Uri& uri, const std::string& name, std::int64_t min,
                                   std::int64_t max) {
  const auto at = uri.query.find(name);
  if (at == uri.query.end()) return std::nullopt;
  const std::optional<std::int64_t> value = parse_integer(at->second);
  if (!value || *value < min || *value > max) {
    throw HttpFault(400, name + "=" + at->second + ": must be a whole number from " +
                             std::to_string(min) + " to " + std::to_string(max));
  }
  return value;
}

std::uint64_t number(const Uri& uri, const std::string& name, std::uint64_t default_value,
                     std::int64_t min, std::int64_t max) {
  return static_cast<std::uint64_t>(
      number(uri, name, min, max).value_or(static_cast<std::int64_t>(default_value)));
}

template <class Enum, std::size_t N>
std::optional<Enum> choice(const Uri& uri, const std::string& name,
                           const std::array<std::pair<std::string_view, Enum>, N>& choices) {
  const auto at = uri.query.find(name);
  if (at == uri.query.end()) return std::nullopt;
  std::vector<std::string> words;
  for (const auto& [word, value] : choices) {
    if (at->second == word) return value;
    words.emplace_back(word);
  }
  throw HttpFault(400, name + "=" + at->second + ": must be one of " + join(words, ", "));
}

constexpr std::array<std::pair<std::string_view, JobState>, 6> state_choices{
    {{"QUEUED", JobState::queued},
     {"STARTING", JobState::starting},
     {"RUNNING", JobState::running},
     {"SUCCEEDED", JobState::succeeded},
     {"FAILED", JobState::failed},
     {"CANCELLED", JobState::cancelled}}};
constexpr std::array<std::pair<std::string_view, EventKind>, 4> kind_choices{
    {{"point", EventKind::point},
     {"log", EventKind::log},
     {"state", EventKind::state},
     {"run_state", EventKind::run_state}}};
constexpr std::array<std::pair<std::string_view, Series>, 7> series_choices{
    {{"objective", Series::objective},
     {"last_stage_loss", Series::last_stage_loss},
     {"gradient_norm_sq", Series::gradient_norm_sq},
     {"gradient_norm_sq_mean", Series::gradient_norm_sq_mean},
     {"bound", Series::bound},
     {"gap", Series::gap},
     {"validation", Series::validation}}};
constexpr std::array<std::pair<std::string_view, XAxis>, 5> x_choices{
    {{"tick", XAxis::tick},
     {"updates", XAxis::updates},
     {"microbatch", XAxis::microbatch},
     {"index", XAxis::index},
     {"time", XAxis::time}}};
constexpr std::array<std::pair<std::string_view, WireFormat>, 2> format_choices{
    {{"protobuf", WireFormat::protobuf}, {"json", WireFormat::json}}};

constexpr std::int64_t id_max = std::numeric_limits<JobId>::max();
constexpr std::int64_t x_max = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t sequence_max = std::numeric_limits<std::int64_t>::max() - 1;

}  // namespace

const std::vector<Api::Route>& Api::routes() {
  static const std::vector<Route> table = {
      // The page itself holds nothing secret: it asks for the token.
      {"GET", {""}, Access::open, {}, &Api::page},
      {"GET", {"assets", "{name}"}, Access::open, {}, &Api::asset},
      {"GET", {"healthz"}, Access::open, {}, &Api::health},
      {"GET", {"readyz"}, Access::open, {}, &Api::ready},
      {"GET", {"metrics"}, Access::read, {}, &Api::metrics},
      {"GET", {"v1", "openapi.json"}, Access::open, {}, &Api::description},
      {"POST", {"v1", "jobs"}, Access::submit, {}, &Api::submit},
      {"GET", {"v1", "jobs"}, Access::read, {"limit", "before", "state"}, &Api::list},
      {"GET", {"v1", "jobs", "{id}"}, Access::read, {}, &Api::show},
      {"DELETE", {"v1", "jobs", "{id}"}, Access::submit, {}, &Api::remove},
      {"POST", {"v1", "jobs", "{id}", "cancel"}, Access::submit, {}, &Api::cancel},
      {"GET",
       {"v1", "jobs", "{id}", "events"},
       Access::read,
       {"from", "limit", "kind", "run"},
       &Api::events},
      {"GET", {"v1", "jobs", "{id}", "runs"}, Access::read, {"from", "limit"}, &Api::runs},
      {"GET", {"v1", "jobs", "{id}", "runs", "{run}"}, Access::read, {}, &Api::run},
      {"GET",
       {"v1", "jobs", "{id}", "runs", "{run}", "series"},
       Access::read,
       {"series", "x", "from", "to", "buckets"},
       &Api::series},
      {"GET", {"v1", "jobs", "{id}", "runs", "{run}", "files"}, Access::read, {}, &Api::files},
      {"GET",
       {"v1", "jobs", "{id}", "runs", "{run}", "files", "{name}"},
       Access::read,
       {},
       &Api::file},
      // Of run 0, which is all that most jobs have.
      {"GET", {"v1", "jobs", "{id}", "files"}, Access::read, {}, &Api::files},
      {"GET", {"v1", "jobs", "{id}", "files", "{name}"}, Access::read, {}, &Api::file},
      {"GET",
       {"v1", "jobs", "{id}", "stream"},
       Access::read,
       {"from", "format"},
       &Api::stream,
       true},
      {"GET", {"v1", "pools"}, Access::read, {}, &Api::pools},
      {"GET", {"v1", "pools", "attach"}, Access::pool, {}, &Api::attach, true},
      {"POST", {"v1", "pools", "{name}", "drop"}, Access::admin, {}, &Api::drop_pool},
      {"GET", {"v1", "token"}, Access::any_token, {}, &Api::token},
      {"GET", {"v1", "tokens"}, Access::admin, {}, &Api::tokens},
      {"POST", {"v1", "tokens"}, Access::admin, {}, &Api::create_token},
      {"DELETE", {"v1", "tokens", "{name}"}, Access::admin, {}, &Api::revoke_token},
  };
  return table;
}

ApiReply Api::fault(unsigned status, const std::string& message, std::string_view accept,
                    const std::string& path) {
  return reply(status, ErrorReply{message, path}, format_from(accept));
}

ApiAnswer Api::answer(const ApiRequest& request) {
  try {
    return dispatch(request);
  } catch (...) {
    return refusal(request.accept, request.target.substr(0, request.target.find('?')));
  }
}

/// What the exception that is being handled says.
ApiReply Api::refusal(std::string_view accept, std::string_view path) {
  try {
    throw;
  } catch (const HttpFault& error) {
    ApiReply reply = fault(error.status(), error.what(), accept);
    reply.allow = error.allow();
    reply.wrong_token = dynamic_cast<const WrongToken*>(&error) != nullptr;
    return reply;
  } catch (const KeyTaken& error) {
    return fault(422, error.what(), accept);
  } catch (const ParamError& error) {
    return fault(400, error.what(), accept, error.path());
  } catch (const StoreError& error) {
    log_error("store refuses", {{"error", error.what()}});
    return fault(503, error.what(), accept);
  } catch (const QueueFull& error) {
    return fault(503, error.what(), accept);
  } catch (const Error& error) {  // ConfigError, DataError, ProtocolError
    return fault(400, error.what(), accept);
  } catch (const std::exception& error) {
    log_error("request failed", {{"target", path}, {"error", error.what()}});
    return fault(500, std::string("the daemon failed at this request: ") + error.what(), accept);
  }
}

ApiAnswer Api::dispatch(const ApiRequest& request) {
  Call call{request, Uri::parse(request.target), 0, 0, {}, format_from(request.accept), nullptr};
  const bool open = std::any_of(routes().begin(), routes().end(), [&](const Route& route) {
    return route.access == Access::open && match(route.path, call);
  });
  if (!open) call.holder = holder_of(request);
  const Route& route = find_route(call);
  if (call.holder) need(route.access, *call.holder);
  for (const auto& [name, value] : call.uri.query) {
    if (std::find(route.parameters.begin(), route.parameters.end(), name) ==
        route.parameters.end()) {
      throw HttpFault(
          400, "the parameter '" + name + "' is not known here" + suggest(name, route.parameters));
    }
  }
  if (route.websocket && !request.websocket) {
    throw HttpFault(426, "this is a WebSocket: ask for an upgrade");
  }
  ApiAnswer answer = (this->*route.handler)(call);
  if (auto* given = std::get_if<ApiReply>(&answer); given != nullptr && call.holder) {
    given->user = call.holder->name;
  }
  return answer;
}

/// The path of the call follows the pattern; sets what stands for {id}, {run} and {name}.
bool Api::match(const std::vector<std::string_view>& pattern, Call& call) {
  if (pattern.size() != call.uri.path.size()) return false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const std::string& part = call.uri.path[i];
    if (pattern[i] == "{id}") {
      const std::optional<std::int64_t> id = parse_integer(part);
      if (!id || *id < 1 || *id > id_max) return false;
      call.job = static_cast<JobId>(*id);
    } else if (pattern[i] == "{run}") {
      const std::optional<std::int64_t> run = parse_integer(part);
      if (!run || *run < 0 || *run > id_max) return false;
      call.run = static_cast<std::uint32_t>(*run);
    } else if (pattern[i] == "{name}") {
      call.name = part;
    } else if (pattern[i] != part) {
      return false;
    }
  }
  return true;
}

const Api::Route& Api::find_route(Call& call) {
  std::vector<std::string> allowed;
  for (const Route& route : routes()) {
    if (!match(route.path, call)) continue;
    if (route.method == call.request.method) return route;
    allowed.emplace_back(route.method);
  }
  if (allowed.empty()) throw HttpFault(404, "there is nothing here; docs/http.md lists the routes");
  const std::string methods = join(allowed, ", ");
  throw HttpFault(405, "the method here is " + methods, methods);
}

ApiAnswer Api::page(const Call&) {
  const Page::File* file = page_.find("index.html");
  if (file == nullptr) {
    throw HttpFault(404, "this daemon was built without its web page (npm was missing)");
  }
  ApiReply reply;
  reply.content_type = file->content_type;
  reply.body = file->body;
  reply.cache_control = "no-cache";
  reply.security_policy = page_policy;
  return reply;
}

/// Their names carry a hash of what is in them.
ApiAnswer Api::asset(const Call& call) {
  const Page::File* file = page_.find("assets/" + call.name);
  if (file == nullptr) throw HttpFault(404, "the page has no such file");
  ApiReply reply;
  reply.content_type = file->content_type;
  reply.body = file->body;
  reply.cache_control = "public, max-age=31536000, immutable";
  return reply;
}

ApiAnswer Api::health(const Call& call) {
  return reply(200, Health{"ok", std::string(program_version())}, call.format);
}

/// Whether a job would be taken now.
ApiAnswer Api::ready(const Call& call) {
  const std::string why_not = service_.not_ready();
  if (!why_not.empty()) throw HttpFault(503, why_not);
  return reply(200, Health{"ready", std::string(program_version())}, call.format);
}

ApiAnswer Api::metrics(const Call&) {
  ApiReply reply;
  reply.content_type = "text/plain; version=0.0.4";
  reply.body = service_.metrics_text();
  return reply;
}

ApiAnswer Api::description(const Call&) {
  std::vector<RouteInfo> all;
  for (const Route& route : routes()) {
    const std::vector<std::string> parts(route.path.begin(), route.path.end());
    all.push_back({std::string(route.method), "/" + join(parts, "/"),
                   std::string(role_name(route.access)), route.websocket, route.parameters});
  }
  ApiReply reply;
  reply.content_type = "application/json";
  reply.body = to_json(openapi(all)) + "\n";
  return reply;
}

ApiAnswer Api::list(const Call& call) {
  ListQuery query;
  query.limit = number(call.uri, "limit", 50, 1, 1000);
  query.before = static_cast<JobId>(number(call.uri, "before", 0, 0, id_max));
  query.state = choice(call.uri, "state", state_choices);
  return reply(200, service_.list(query), call.format);
}

static Job there(std::optional<Job> job, JobId id) {
  if (!job) throw HttpFault(404, "there is no job " + std::to_string(id));
  return std::move(*job);
}

Job Api::existing(JobId id) {
  return there(service_.job(id), id);
}

/// The same without what is large.
Job Api::brief(JobId id) {
  return there(service_.brief(id), id);
}

ApiAnswer Api::show(const Call& call) {
  return reply(200, existing(call.job), call.format);
}

ApiAnswer Api::cancel(const Call& call) {
  need_own(brief(call.job), *call.holder, "cancel");
  switch (service_.cancel(call.job)) {
    case Service::CancelAnswer::unknown:
      throw HttpFault(404, "there is no job " + std::to_string(call.job));
    case Service::CancelAnswer::has_ended:
      throw HttpFault(409, "job " + std::to_string(call.job) + " has ended: it is " +
                               std::string(name_of(brief(call.job).state)));
    case Service::CancelAnswer::asked:
      break;
  }
  return reply(200, existing(call.job), call.format);
}

/// Answers with the job as it was.
ApiAnswer Api::remove(const Call& call) {
  const Job job = existing(call.job);
  need_own(job, *call.holder, "delete");
  switch (service_.remove(call.job)) {
    case Service::RemoveAnswer::unknown:
      throw HttpFault(404, "there is no job " + std::to_string(call.job));
    case Service::RemoveAnswer::has_not_ended:
      throw HttpFault(409, "job " + std::to_string(call.job) + " has not ended: it is " +
                               std::string(name_of(job.state)) + "; cancel it first");
    case Service::RemoveAnswer::removed:
      break;
  }
  return reply(200, job, call.format);
}

ApiAnswer Api::events(const Call& call) {
  EventQuery query;
  query.from = number(call.uri, "from", 1, 1, sequence_max);
  query.limit = number(call.uri, "limit", 1000, 1, 10'000);
  query.kind = choice(call.uri, "kind", kind_choices);
  if (call.uri.query.contains("run")) {
    query.run = static_cast<std::uint32_t>(number(call.uri, "run", 0, 0, id_max));
  }
  brief(call.job);
  return reply(200, service_.events(call.job, query), call.format);
}

ApiAnswer Api::runs(const Call& call) {
  brief(call.job);
  const auto from = static_cast<std::uint32_t>(number(call.uri, "from", 0, 0, id_max));
  return reply(200, service_.runs(call.job, from, number(call.uri, "limit", 100, 1, 1000)),
               call.format);
}

Run Api::existing_run(JobId id, std::uint32_t number) {
  brief(id);
  RunList list = service_.runs(id, number, 1);
  if (list.runs.empty()) {
    throw HttpFault(404, "job " + std::to_string(id) + " has no run " + std::to_string(number));
  }
  return std::move(list.runs.front());
}

ApiAnswer Api::run(const Call& call) {
  return reply(200, existing_run(call.job, call.run), call.format);
}

ApiAnswer Api::series(const Call& call) {
  SeriesQuery query;
  query.series = choice(call.uri, "series", series_choices).value_or(Series::objective);
  query.x = choice(call.uri, "x", x_choices).value_or(XAxis::tick);
  query.from = number(call.uri, "from", -x_max, x_max);
  query.to = number(call.uri, "to", query.from.value_or(-x_max), x_max);
  query.buckets = number(call.uri, "buckets", query.buckets, 1, 4000);
  const bool of_loss = query.series == Series::last_stage_loss;
  if (query.x == (of_loss ? XAxis::updates : XAxis::microbatch)) {
    throw HttpFault(400, of_loss ? "x=updates: the losses of the last stage have tick, "
                                   "microbatch, index and time"
                                 : "x=microbatch: only last_stage_loss has it; this series has "
                                   "tick, updates, index and time");
  }
  if (call.run >= brief(call.job).progress.runs.total) {
    throw HttpFault(404,
                    "job " + std::to_string(call.job) + " has no run " + std::to_string(call.run));
  }
  return reply(200, service_.series(call.job, call.run, query), call.format);
}

/// The run's files are all there; refuses else.
void Api::need_files(const Call& call) {
  const Run run = existing_run(call.job, call.run);
  if (is_final(run.state) && service_.run_is_stored(call.job, call.run)) return;
  throw HttpFault(409, "run " + std::to_string(call.run) + " of job " + std::to_string(call.job) +
                           " has not ended: it is " + std::string(name_of(run.state)));
}

ApiAnswer Api::files(const Call& call) {
  need_files(call);
  return reply(200, service_.files().list({call.job, call.run}), call.format);
}

ApiAnswer Api::file(const Call& call) {
  need_files(call);
  std::optional<std::filesystem::path> path =
      service_.files().find({call.job, call.run}, call.name);
  if (!path) {
    throw HttpFault(404, "run " + std::to_string(call.run) + " of job " + std::to_string(call.job) +
                             " has no file '" + call.name + "'");
  }
  ApiReply reply;
  reply.content_type = "application/octet-stream";
  reply.file = std::move(*path);
  return reply;
}

ApiAnswer Api::stream(const Call& call) {
  ServeStream stream{call.job, number(call.uri, "from", 1, 1, sequence_max),
                     choice(call.uri, "format", format_choices).value_or(WireFormat::protobuf),
                     call.holder};
  const std::uint64_t next = brief(call.job).last_sequence + 1;
  if (stream.from > next) {
    throw HttpFault(400, "from=" + std::to_string(stream.from) + ": the next event of job " +
                             std::to_string(call.job) + " is " + std::to_string(next));
  }
  return stream;
}

ApiAnswer Api::pools(const Call& call) {
  return reply(200, service_.pools(), call.format);
}

/// Answers with the pool as it was.
ApiAnswer Api::drop_pool(const Call& call) {
  PoolInfo dropped;
  for (PoolInfo& pool : service_.pools().pools) {
    if (pool.name == call.name) dropped = std::move(pool);
  }
  switch (service_.drop_pool(call.name, "it was given up by " + call.holder->name)) {
    case Service::DropAnswer::unknown:
      throw HttpFault(404, "there is no pool '" + call.name + "'");
    case Service::DropAnswer::is_there:
      throw HttpFault(409, "pool '" + call.name +
                               "' is not away: end it where it runs (scancel, or SIGUSR1 to any "
                               "of its ranks)");
    case Service::DropAnswer::dropped:
      break;
  }
  log_info("pool dropped", {{"pool", call.name}, {"by", call.holder->name}});
  return reply(200, dropped, call.format);
}

ApiAnswer Api::attach(const Call& call) {
  return ServePool{call.holder};
}

}  // namespace pipewright
