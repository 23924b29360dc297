#include "tests/service/support.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace pipewright::test {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "pipewright-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::uint16_t port_of(const std::string& url) {
  return static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
}

namespace {

void openssl(const std::string& arguments) {
  const std::string command = "openssl " + arguments + " >/dev/null 2>&1";
  if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
}

const TemporaryFolder& certificate_folder() {
  static const TemporaryFolder folder;
  return folder;
}

}  // namespace

const TestCertificates& test_certificates() {
  static const TestCertificates files = [] {
    const fs::path folder = certificate_folder().path();
    const TestCertificates made{folder / "ca.pem", folder / "server.pem", folder / "server.key"};
    openssl(
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj '/CN=test CA'"
        " -days 2 -keyout " +
        (folder / "ca.key").string() + " -out " + made.ca.string());
    make_certificate(made.certificate, made.key, "DNS:localhost,IP:127.0.0.1");
    return made;
  }();
  return files;
}

void make_certificate(const fs::path& certificate, const fs::path& key, const std::string& names,
                      int days) {
  const fs::path folder = certificate_folder().path();
  const std::string request = certificate.string() + ".csr";
  const std::string extensions = certificate.string() + ".ext";
  std::ofstream(extensions) << "subjectAltName=" << names << "\n";
  openssl("req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=test -keyout " +
          key.string() + " -out " + request);
  openssl("x509 -req -in " + request + " -CA " + (folder / "ca.pem").string() + " -CAkey " +
          (folder / "ca.key").string() + " -CAcreateserial -days " + std::to_string(days) +
          " -extfile " + extensions + " -out " + certificate.string());
  fs::permissions(key, fs::perms::owner_read | fs::perms::owner_write);
}

RunningDaemon::RunningDaemon(DaemonOptions options) {
  options.port = 0;
  if (std::getenv("PIPEWRIGHT_TEST_TLS") != nullptr && options.tls.certificate.empty()) {
    const TestCertificates& files = test_certificates();
    options.tls = {files.certificate, files.key};
    options.tls_ca = files.ca;
    speak_tls(files.ca);
  }
  daemon_ = std::make_unique<Daemon>(options);
  port_ = port_of(daemon_->url());
  token_ = read_file(daemon_->data_dir() / "token").substr(0, 64);
  thread_ = std::thread([this] { daemon_->run(); });
}

RunningDaemon::~RunningDaemon() {
  stop();
}

void RunningDaemon::stop() {
  if (!thread_.joinable()) return;
  daemon_->stop("the test ends");
  thread_.join();
  daemon_.reset();
}

Value small_job(int stages, const std::string& name) {
  Value job = Value::map();
  job.set("name", name);
  set_path(job, "objective.quadratic.generate",
           Value(Value::Map{{"kind", "tridiagonal"}, {"examples", 16}, {"parameters", 16}}));
  set_path(job, "objective.quadratic.batch_size", 4);
  set_path(job, "schedule.pipedream.stages", stages);
  set_path(job, "schedule.pipedream.microbatches", 8);
  set_path(job, "optimizer.sgd.learning_rate", 0.1);
  return job;
}

std::uint32_t submit(const Client& client, const Value& job) {
  const Reply reply =
      client.send("POST", "/v1/jobs", encode(JobSpecBody{job}, WireFormat::protobuf),
                  {{"Content-Type", "application/x-protobuf"}});
  if (reply.status != 201) throw std::runtime_error("not accepted: " + reply.body);
  return decode<SubmitReply>(reply.body, WireFormat::json).id;
}

Job show(const Client& client, std::uint32_t id) {
  return decode<Job>(client.get("/v1/jobs/" + std::to_string(id)).body, WireFormat::json);
}

Job wait_for(const Client& client, std::uint32_t id, JobState state) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (true) {
    Job job = show(client, id);
    if (job.state == state) return job;
    if (std::chrono::steady_clock::now() > deadline) {
      throw std::runtime_error("job " + std::to_string(id) + " stays " +
                               std::string(name_of(job.state)) + ": " + job.message);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

EventList events(const Client& client, std::uint32_t id, const std::string& parameters) {
  const Reply reply = client.get("/v1/jobs/" + std::to_string(id) + "/events" + parameters,
                                 {{"Accept", "application/x-protobuf"}});
  if (reply.status != 200) throw std::runtime_error(reply.body);
  return decode<EventList>(reply.body, WireFormat::protobuf);
}

std::vector<Point> points_of(const EventList& list) {
  std::vector<Point> points;
  for (const Event& event : list.events) {
    if (const auto* point = std::get_if<Point>(&event.what)) points.push_back(*point);
  }
  return points;
}

std::vector<Point> some_points(std::size_t first, std::size_t count) {
  std::vector<Point> points;
  for (std::size_t i = first; i < first + count; ++i) {
    const auto n = static_cast<std::int64_t>(i);
    points.push_back(
        i % 2 == 0 ? Point{Series::objective, n, n / 2, 0, 1.0 / static_cast<double>(n + 1)}
                   : Point{Series::last_stage_loss, n, 0, n / 2, -0.5 * static_cast<double>(n)});
  }
  return points;
}

namespace {

PoolHello hello_of(const std::string& name, std::uint32_t ranks) {
  PoolHello hello;
  hello.name = name;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) hello.ranks.push_back({rank, "here", 1});
  hello.program_version = "test";
  return hello;
}

}  // namespace

FakePool::FakePool(const Client& client, const std::string& name, std::uint32_t ranks)
    : socket_(client.port(), "/v1/pools/attach", client.token()) {
  hello(hello_of(name, ranks));
}

FakePool::FakePool(const Client& client, const std::string& name, const std::string& instance,
                   std::vector<RunId> runs, std::uint32_t ranks)
    : socket_(client.port(), "/v1/pools/attach", client.token()) {
  PoolHello mine = hello_of(name, ranks);
  mine.instance = instance;
  mine.runs = std::move(runs);
  hello(mine);
}

void FakePool::hello(const PoolHello& hello) {
  send(hello);
  const std::optional<DaemonFrame> answer = receive();
  if (!answer) throw std::runtime_error("no answer to a hello");
  if (const auto* no = std::get_if<Refused>(&*answer)) refused_ = *no;
}

std::optional<DaemonFrame> FakePool::receive() {
  while (const std::optional<std::string> bytes = socket_.receive()) {
    DaemonFrame frame = decode_daemon_frame(*bytes);
    if (!std::holds_alternative<Heartbeat>(frame)) return frame;
    send(Heartbeat{});
  }
  return std::nullopt;
}

void FakePool::send_file(RunId run, const std::string& name, const std::string& text) {
  const std::size_t half = text.size() / 2;
  send(RunFileChunk{run, name, 0, text.substr(0, half), false});
  send(RunFileChunk{run, name, half, text.substr(half), true});
}

void FakePool::end(RunId run, RunOutcome outcome, const std::string& message) {
  const bool good = outcome == RunOutcome::succeeded;
  send(RunEnded{run, outcome, message, good ? "{\"job\": " + std::to_string(run.job) + "}" : ""});
}

void FakePool::run(const StartRun& start, std::size_t points) {
  send(RunStarted{start.run});
  if (points > 0) send_points(start.run, 0, points);
  send_file(start.run, "objective.csv", "tick,updates,value\n0,0,1\n");
  end(start.run);
}

Watcher::Watcher(const Client& client, std::uint32_t job, const std::string& parameters,
                 int receive_buffer_bytes)
    : format_(parameters.find("json") == std::string::npos ? WireFormat::protobuf
                                                           : WireFormat::json),
      socket_(client.port(), "/v1/jobs/" + std::to_string(job) + "/stream" + parameters,
              client.token(), receive_buffer_bytes) {}

std::optional<StreamFrame> Watcher::receive() {
  const std::optional<std::string> bytes = socket_.receive();
  if (!bytes) return std::nullopt;
  StreamFrame frame = decode<StreamFrame>(*bytes, format_);
  if (const auto* list = std::get_if<EventList>(&frame)) {
    events_.insert(events_.end(), list->events.begin(), list->events.end());
  }
  return frame;
}

bool Watcher::until_events(std::size_t count) {
  while (events_.size() < count) {
    if (!receive()) return false;
  }
  return true;
}

void expect_numbered(const std::vector<Event>& events, std::uint64_t first) {
  for (std::size_t i = 0; i < events.size(); ++i) {
    ASSERT_EQ(events[i].sequence, first + i) << "at " << i;
  }
}

}  // namespace pipewright::test
