// Requests to the daemon, below its sockets. An input is text:
//   METHOD TARGET
//   content-type: ...          (headers that the routes read, in any order; "websocket:" asks for
//   one) (an empty line) body
#include <spdlog/spdlog.h>

#include <array>
#include <fstream>
#include <memory>

#include "core/base/text.hpp"
#include "daemon/net/api.hpp"
#include "proto/codec/job_file.hpp"
#include "tests/fuzz/data_folder.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace pipewright;

namespace {

constexpr std::string_view a_job =
    "{\"objective\": {\"quadratic\": {\"generate\": {\"kind\": \"random\", \"examples\": 8, "
    "\"parameters\": 4}, \"batch_size\": 2}}, \"schedule\": {\"pipedream\": {\"stages\": 2, "
    "\"microbatches\": 4}}, \"optimizer\": {\"sgd\": {\"learning_rate\": 0.1}}}";

/// A daemon with one job; a new one now and then, so that what an input leaves behind stays small.
class Target {
 public:
  Target() : service_(folder_.path()), tokens_(folder_.path()), api_(service_, tokens_) {
    std::ifstream(folder_.path() / "token") >> token_;
    service_.submit(Service::prepare(JobFile::parse(a_job, "a job").checked(), {.user = "owner"}),
                    [](const Service::SubmitResult&) {});
    service_.commit();
  }
  const std::string& token() const { return token_; }
  void take(const ApiRequest& request) {
    ApiAnswer answer = api_.answer(request);
    if (auto* job = std::get_if<TakeJob>(&answer)) {
      take(*job, answer);
    }
    if (const auto* reply = std::get_if<ApiReply>(&answer)) {
      fuzz::claim(reply->status >= 200 && reply->status < 600, "a status is one of HTTP");
      fuzz::claim(reply->status != 500, "no request makes the daemon fail");
      fuzz::claim(reply->status < 400 || !reply->body.empty(), "an error says something");
    }
    service_.tick();
  }

 private:
  void take(TakeJob job, ApiAnswer& answer) {
    try {
      service_.submit(job.check(), [&](const Service::SubmitResult& result) {
        answer = Api::submitted(result, WireFormat::json);
      });
    } catch (...) {
      answer = Api::not_taken(WireFormat::json);
      return;
    }
    service_.commit();
  }

  fuzz::DataFolder folder_;
  Service service_;
  Tokens tokens_;
  Api api_;
  std::string token_;
};

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

ApiRequest request_of(std::string_view text) {
  ApiRequest request;
  std::string_view line = take_line(text);
  const std::size_t space = std::min(line.find(' '), line.size());
  request.method = line.substr(0, space);
  request.target = line.substr(std::min(space + 1, line.size()));
  const std::array<std::pair<std::string_view, std::string_view*>, 4> headers{
      {{"content-type:", &request.content_type},
       {"accept:", &request.accept},
       {"authorization:", &request.authorization},
       {"idempotency-key:", &request.idempotency_key}}};
  while (!text.empty() && !(line = take_line(text)).empty()) {
    if (line.starts_with("websocket:")) request.websocket = true;
    for (const auto& [name, value] : headers) {
      if (line.starts_with(name)) *value = trim(line.substr(name.size()));
    }
  }
  request.body = text;
  return request;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static std::unique_ptr<Target> target;
  static int uses = 0;
  constexpr int uses_max = 200;
  if (!target || ++uses == uses_max) {
    spdlog::set_level(spdlog::level::off);
    target = std::make_unique<Target>();
    uses = 0;
  }
  ApiRequest request = request_of(fuzz::text_of(data, size));
  const std::string with_token = "Bearer " + target->token();
  // Most inputs are to come further than the door; those that name a token meet it.
  if (request.authorization.empty()) request.authorization = with_token;
  target->take(request);
  return 0;
}
