// What the service bears, as one table: submissions, a large array, streams, clients that do not
// read, a large store. The daemon is a process of its own, reached over loopback; its pool is made
// of test code. Everything is bounded and ends by itself.
//   bench_service_load [--smoke] [FIGURE ...]      (submit array streams stuck store)
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <thread>

#include "bench/measure.hpp"
#include "bench/service/store.hpp"
#include "bench/service/streams.hpp"
#include "core/base/value.hpp"
#include "tests/service/daemon_process.hpp"

namespace pipewright::bench {
namespace {

using test::Client;
using test::FakePool;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::string text(const char* format, auto... values) {
  char line[256];
  std::snprintf(line, sizeof line, format, values...);
  return line;
}

void print_row(const std::string& what, const std::string& asked, const std::string& seen) {
  std::printf("%-62s | %-16s | %s\n", what.c_str(), asked.c_str(), seen.c_str());
  std::fflush(stdout);
}

/// The daemon and what it has used.
class Daemon : public test::DaemonProcess {
 public:
  Daemon() { start(); }
  ~Daemon() override { end(); }
  void start() {
    const auto begin = Clock::now();
    process_ = launch();
    client_.emplace(client_of(*process_));
    opened_in_ = seconds_since(begin);
  }
  void end(int signal = SIGTERM) {
    if (process_) process_->kill(signal);
    process_.reset();
  }
  const Client& client() const { return *client_; }
  double opened_in() const { return opened_in_; }
  std::filesystem::path database() const { return data / "pipewright.db"; }

  double cpu_seconds() const {
    std::string stat = test::read_file(proc() / "stat");
    std::istringstream fields(stat.substr(stat.rfind(')') + 2));
    std::string word;
    double ticks = 0;
    for (int field = 3; field <= 15 && fields >> word; ++field) {
      if (field >= 14) ticks += std::stod(word);
    }
    return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }
  double rss_mib() const {
    const std::string status = test::read_file(proc() / "status");
    return std::stod(status.substr(status.find("VmRSS:") + 6)) / 1024;
  }

 private:
  void TestBody() override {}
  std::filesystem::path proc() const { return "/proc/" + std::to_string(process_->pid()); }

  std::unique_ptr<test::Process> process_;
  std::optional<Client> client_;
  double opened_in_ = 0;
};

/// Pages of all sockets' buffers on this machine, which no process is charged for.
double socket_mib() {
  const std::string text = test::read_file("/proc/net/sockstat");
  const std::size_t at = text.find(" mem ", text.find("TCP:"));
  return at == std::string::npos ? 0 : std::stod(text.substr(at + 5)) * 4096 / (1 << 20);
}

std::uint32_t submit(const Client& client, const std::string& name, int repeats = 1) {
  Value job = test::small_job(1, name);
  if (repeats > 1) job.set("repeats", repeats);
  return test::submit(client, job);
}

// 1. Jobs that many clients submit one after the other, each waiting for its answer.
void measure_submissions(bool smoke) {
  Daemon daemon;
  const int threads = 32, each = smoke ? 4 : 300;
  const std::string body = encode(JobSpecBody{test::small_job()}, WireFormat::protobuf);
  std::vector<double> rates, cpu;
  for (int round = 0; round < (smoke ? 1 : 5); ++round) {
    const double cpu_before = daemon.cpu_seconds();
    const auto begin = Clock::now();
    std::vector<std::thread> clients;
    std::atomic<int> accepted = 0;
    for (int i = 0; i < threads; ++i) {
      clients.emplace_back([&] {
        test::Socket socket(daemon.client().port());
        for (int n = 0; n < each; ++n) {
          socket.send(test::request_text("POST", "/v1/jobs",
                                         {{"Authorization", "Bearer " + daemon.client().token()},
                                          {"Content-Type", "application/x-protobuf"}},
                                         body));
          if (test::read_reply(socket).status == 201) ++accepted;
        }
      });
    }
    for (std::thread& client : clients) client.join();
    if (accepted != threads * each) throw std::runtime_error("a submission was refused");
    rates.push_back(accepted / seconds_since(begin));
    cpu.push_back((daemon.cpu_seconds() - cpu_before) * 1e3 / accepted);
  }
  const auto jobs = static_cast<std::uint32_t>(rates.size()) * threads * each;
  daemon.end(SIGKILL);
  daemon.start();
  if (test::show(daemon.client(), jobs).id != jobs) throw std::runtime_error("a job was lost");
  print_row("durable submissions", "1,000 /s",
            text("%.0f /s (best %.0f), daemon %.2f ms CPU each; all there after kill -9",
                 median(rates), *std::max_element(rates.begin(), rates.end()), median(cpu)));
}

// 2. One job of many runs in one request.
void measure_array(bool smoke) {
  Daemon daemon;
  const auto begin = Clock::now();
  const double cpu_before = daemon.cpu_seconds();
  submit(daemon.client(), "array", smoke ? 100 : 20'000);
  print_row("array of 20,000 runs", "one request",
            text("accepted in %.1f ms, daemon %.1f ms CPU", seconds_since(begin) * 1e3,
                 (daemon.cpu_seconds() - cpu_before) * 1e3));
}

/// A run that is under way on a pool of test code.
struct RunUnderWay {
  RunUnderWay(const Client& client, const std::string& name)
      : id(submit(client, name)), pool(client, name, 1), run(pool.expect<StartRun>().run) {
    pool.send(RunStarted{run});
  }
  void add(std::size_t count) {
    pool.send_points(run, points, count);
    points += count;
  }
  /// Until the daemon has said that all points are in the store.
  void until_stored() {
    while (pool.expect<PointsStored>().next_index < points) {
    }
  }
  std::uint32_t id;
  FakePool pool;
  RunId run;
  std::size_t points = 0;
};

/// Points for `seconds`, `rate` a second, to clients that read; gives the points that came too late
/// to be seen after two seconds more.
std::uint64_t feed(RunUnderWay& run, std::vector<StreamClient>& clients, int seconds, int rate) {
  const std::size_t before = run.points;
  constexpr int steps_per_second = 20;
  const auto begin = Clock::now();
  for (int step = 1; step <= seconds * steps_per_second; ++step) {
    run.add(static_cast<std::size_t>(rate / steps_per_second));
    const auto due = begin + std::chrono::milliseconds(step * 1000 / steps_per_second);
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(due - Clock::now());
    if (left.count() > 0) read_all(clients, static_cast<int>(left.count()));
  }
  run.until_stored();
  read_all(clients, 2000);
  std::uint64_t missing = 0;
  for (const StreamClient& client : clients) missing += run.points - client.points();
  if (run.points == before) throw std::runtime_error("no points were sent");
  return missing;
}

double percentile_ms(const std::vector<StreamClient>& clients, double part) {
  std::vector<double> all;
  for (const StreamClient& client : clients) {
    all.insert(all.end(), client.delays_ms().begin(), client.delays_ms().end());
  }
  if (all.empty()) return -1;
  const auto at = all.begin() + static_cast<std::ptrdiff_t>(part * double(all.size() - 1));
  std::nth_element(all.begin(), at, all.end());
  return *at;
}

// 3. Streams that all follow one run.
void measure_streams(bool smoke) {
  Daemon daemon;
  const int count = smoke ? 20 : 500, seconds = smoke ? 1 : 10, rate = 200;
  RunUnderWay run(daemon.client(), "streams");
  std::vector<StreamClient> clients;
  for (int i = 0; i < count; ++i) {
    clients.emplace_back(daemon.client().port(), daemon.client().token(), run.id);
  }
  read_all(clients, 1000);
  const double cpu_before = daemon.cpu_seconds();
  const std::uint64_t missing = feed(run, clients, seconds, rate);
  const double cpu = daemon.cpu_seconds() - cpu_before;
  print_row("500 streams", "100,000 points/s",
            text("%d streams, %d points/s in all for %d s, %llu late; delay %.0f ms (99 %%: %.0f "
                 "ms); daemon %.0f %% of a core",
                 count, count * rate, seconds, static_cast<unsigned long long>(missing),
                 percentile_ms(clients, 0.5), percentile_ms(clients, 0.99), 100 * cpu / seconds));
}

double dropped(const Client& client) {
  const std::string text = client.get("/metrics").body;
  const std::size_t at = text.find("\npipewright_streams_dropped_total ");
  return at == std::string::npos ? 0 : std::stod(text.substr(text.find(' ', at + 1)));
}

// 4. Clients that ask for a long history and never read, beside some that do read.
void measure_stuck(bool smoke) {
  Daemon daemon;
  const int stuck_count = smoke ? 3 : 50, seconds = smoke ? 1 : 40;
  RunUnderWay history(daemon.client(), "history");
  for (int i = 0; i < (smoke ? 2 : 100); ++i) history.add(5000);
  history.until_stored();
  RunUnderWay live(daemon.client(), "live");  // now, for a pool that says nothing is dropped
  std::vector<StreamClient> readers;
  for (int i = 0; i < (smoke ? 5 : 100); ++i) {
    readers.emplace_back(daemon.client().port(), daemon.client().token(), live.id);
  }
  feed(live, readers, 2, 200);
  const double alone_ms = percentile_ms(readers, 0.99);
  const double rss = daemon.rss_mib(), sockets = socket_mib();
  std::vector<StreamClient> stuck;
  for (int i = 0; i < stuck_count; ++i) {
    stuck.emplace_back(daemon.client().port(), daemon.client().token(), history.id, 4096);
  }
  feed(live, readers, 2, 200);
  const double rss_each = (daemon.rss_mib() - rss) / stuck_count;
  const double sockets_each = (socket_mib() - sockets) / stuck_count;
  const std::uint64_t missing = feed(live, readers, seconds, 200);
  print_row("clients that never read", "50, < 1 MiB each",
            text("%.0f of %d cut off; each %.2f MiB of the daemon, %.2f MiB of socket buffers; "
                 "readers' delay (99 %%) %.0f ms, before %.0f ms, %llu points late",
                 dropped(daemon.client()), stuck_count, rss_each, sockets_each,
                 percentile_ms(readers, 0.99), alone_ms, static_cast<unsigned long long>(missing)));
}

/// The first time that a page takes as its client sees it, the median of five more, and what the
/// daemon computes for each of these.
std::string page_times(const Daemon& daemon, const std::string& target) {
  const auto get = [&] {
    const auto begin = Clock::now();
    const test::Reply reply = daemon.client().get(target, {{"Accept", "application/x-protobuf"}});
    if (reply.status != 200) throw std::runtime_error(target + ": " + reply.body);
    return seconds_since(begin) * 1e3;
  };
  const double first = get();
  const double cpu_before = daemon.cpu_seconds();
  std::vector<double> more;
  for (int i = 0; i < 5; ++i) more.push_back(get());
  return text("%.0f ms at first, then %.0f ms (%.0f ms CPU)", first, median(more),
              (daemon.cpu_seconds() - cpu_before) * 1e3 / 5);
}

// 5. A large store.
void measure_store(bool smoke) {
  Daemon daemon;
  daemon.end();
  const LargeStore store = fill_store(daemon.database(), smoke);
  const double megabytes = static_cast<double>(std::filesystem::file_size(daemon.database())) / 1e6;
  daemon.start();
  print_row("store of 100,000 runs, 10M points", "open in 3 s",
            text("%.0f MB: opened in %.2f s, %.0f MiB resident", megabytes, daemon.opened_in(),
                 daemon.rss_mib()));
  const std::string many = "/v1/jobs/" + std::to_string(store.many_runs);
  const std::string large = "/v1/jobs/" + std::to_string(store.long_run);
  const std::string series = large + "/runs/0/series";
  const std::string loss = series + "?series=last_stage_loss";
  const std::string half = std::to_string(store.long_points / 2);
  for (const std::string& target :
       {std::string("/v1/jobs?limit=1000"), std::string("/v1/jobs?limit=1000&before=2000"), many,
        many + "/runs?limit=1000", many + "/runs?limit=1000&from=" + std::to_string(store.runs / 2),
        large + "/events?limit=1000&from=" + half, large + "/events?limit=10000&from=" + half, loss,
        loss + "&buckets=4000", loss + "&x=microbatch", loss + "&x=index",
        loss + "&from=1000&to=" + half, series, series + "?x=updates&buckets=100",
        std::string("/metrics")}) {
    print_row("  " + target.substr(target.starts_with("/v1") ? 3 : 0), "100 ms",
              page_times(daemon, target));
  }
}

}  // namespace
}  // namespace pipewright::bench

int main(int argc, char** argv) {
  using namespace pipewright::bench;
  std::vector<std::string> wanted(argv + 1, argv + argc);
  const bool smoke = std::erase(wanted, "--smoke") > 0;
  const std::vector<std::pair<std::string, void (*)(bool)>> figures{{"submit", measure_submissions},
                                                                    {"array", measure_array},
                                                                    {"streams", measure_streams},
                                                                    {"stuck", measure_stuck},
                                                                    {"store", measure_store}};
  try {
    for (const auto& [name, measure] : figures) {
      const bool chosen = std::find(wanted.begin(), wanted.end(), name) != wanted.end();
      if (wanted.empty() || chosen) measure(smoke);
    }
  } catch (const std::exception& error) {
    std::cerr << "bench_service_load: " << error.what() << '\n';
    return 1;
  }
}
