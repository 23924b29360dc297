// What a pool sends, in order: frames, each behind its length (two bytes, the lower one first). The
// daemon has one job, two stages wide, and has started it on that pool. In the end the pool is cut
// off, and comes back.
#include <spdlog/spdlog.h>

#include "daemon/service.hpp"
#include "proto/codec/job_file.hpp"
#include "tests/fuzz/data_folder.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace pipewright;

namespace {

constexpr std::string_view a_job =
    "{\"objective\": {\"quadratic\": {\"generate\": {\"kind\": \"random\", \"examples\": 8, "
    "\"parameters\": 4}, \"batch_size\": 2}}, \"schedule\": {\"pipedream\": {\"stages\": 2, "
    "\"microbatches\": 4}}, \"optimizer\": {\"sgd\": {\"learning_rate\": 0.1}}}";

class Port : public PoolPort {
 public:
  void send(std::string frame) override { decode_daemon_frame(frame); }
  void close(const std::string&) override { closed = true; }
  bool closed = false;
};

std::string_view take_frame(std::string_view& rest) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(rest[i]); };
  const std::size_t length = std::min<std::size_t>(byte(0) | byte(1) << 8, rest.size() - 2);
  const std::string_view frame = rest.substr(2, length);
  rest.remove_prefix(2 + length);
  return frame;
}

void check_job_holds(Service& service, JobId id) {
  const std::optional<Job> job = service.job(id);
  fuzz::claim(job.has_value(), "the job is there");
  std::uint64_t sequence = 0;
  for (;;) {
    const EventList list = service.events(id, {.from = sequence + 1, .kind = {}, .run = {}});
    if (list.events.empty()) break;
    for (const Event& event : list.events) {
      fuzz::claim(event.sequence == ++sequence, "events have no gap");
    }
  }
  fuzz::claim(sequence == job->last_sequence, "all events are there");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spdlog::set_level(spdlog::level::off);
  const fuzz::DataFolder folder;
  Service service(folder.path());
  JobId id = 0;
  service.submit(
      Service::prepare(JobFile::parse(a_job, "a job").checked(), {.user = "owner"}),
      [&](const Service::SubmitResult& result) { id = std::get<Service::Submitted>(result).id; });
  service.commit();
  Port port;
  PoolHello hello;
  hello.name = "pool";
  hello.instance = "1";
  for (std::uint32_t rank = 0; rank < 2; ++rank) hello.ranks.push_back({rank, "host", 1000 + rank});
  const auto pool = service.attach(hello, port);
  fuzz::claim(std::holds_alternative<PoolId>(pool), "the pool is let in");
  std::string_view rest = fuzz::text_of(data, size);
  std::string why = "its connection was closed";
  try {
    while (rest.size() >= 2 && !port.closed) {
      service.on_frame(std::get<PoolId>(pool), decode_pool_frame(take_frame(rest)));
    }
  } catch (const ProtocolError& error) {
    why = error.what();
  }
  service.tick();
  service.detach(std::get<PoolId>(pool), port, why);
  service.tick();
  check_job_holds(service, id);
  // Whatever it has said, it may come back with the run.
  Port again;
  hello.runs.push_back({id, 0, 1});
  const auto back = service.attach(hello, again);
  fuzz::claim(std::holds_alternative<PoolId>(back), "the pool is let in again");
  service.tick();
  service.detach(std::get<PoolId>(back), again, why);
  check_job_holds(service, id);
  return 0;
}
