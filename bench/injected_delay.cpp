// How much later than asked a receiver sees an injected latency of 5 ms: a job of two stages on two
// ranks, one microbatch at a time, so every message finds its receiver waiting.
//   mpirun -n 2 build/release/bench/bench_injected_delay
// The aim on an idle machine: never less than asked, at the median at most 0.2 ms more.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "proto/codec/job_file.hpp"
#include "worker/mpi/mpi_transport.hpp"
#include "worker/runtime/pool.hpp"

namespace pipewright {
namespace {

std::atomic<bool> stop{false};  // nobody sets it

constexpr std::int64_t latency_ns = 5'000'000;

Value job() {
  JobFile file = JobFile::parse(
      "{objective: {quadratic: {generate: {kind: random, examples: 200, parameters: 64},"
      " batch_size: 8}}, schedule: {pipedream: {stages: 2, microbatches: 200, in_flight_max: 1}},"
      " optimizer: {sgd: {learning_rate: 0.001}}, link: {latency: 5ms}, clock: real,"
      " observe: {objective: {never: {}}}}",
      "bench");
  return file.checked();
}

/// For each message the time from the end of the action that made it to the start of the one that
/// uses it, beyond the latency. In nanoseconds.
std::vector<std::int64_t> overshoots(const std::string& timeline) {
  using What = std::tuple<int, char, std::int64_t>;  // stage, kind, microbatch
  std::map<What, std::pair<std::int64_t, std::int64_t>> times;
  std::ifstream in(timeline);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    int stage = 0, replica = 0;
    char kind = 0;
    long long microbatch = 0, start = 0, end = 0;
    if (std::sscanf(line.c_str(), "%d,%c,%lld,%d,%lld,%lld", &stage, &kind, &microbatch, &replica,
                    &start, &end) == 6) {
      times[{stage, kind, microbatch}] = {start, end};
    }
  }
  std::vector<std::int64_t> found;
  for (const auto& [what, time] : times) {
    const auto& [stage, kind, microbatch] = what;
    const bool is_receiver = (kind == 'F' && stage == 1) || (kind == 'B' && stage == 0);
    if (!is_receiver) continue;
    const auto input = times.find({1 - stage, kind, microbatch});
    if (input != times.end()) found.push_back(time.first - input->second.second - latency_ns);
  }
  std::sort(found.begin(), found.end());
  return found;
}

int coordinate(Transport& transport) {
  const auto folder = std::filesystem::temp_directory_path() /
                      ("pipewright-bench-delay-" + std::to_string(getpid()));
  gather_ranks(transport, {0, MpiSession::host(), getpid()}, stop);
  const StandaloneResult result = run_standalone(transport, job(), folder.string(), {});
  shut_down_ranks(transport);
  const auto found = overshoots((folder / "timeline.csv").string());
  std::filesystem::remove_all(folder);
  if (result.outcome != RunOutcome::succeeded || found.empty()) {
    std::fprintf(stderr, "the run failed: %s\n", result.message.c_str());
    return 1;
  }
  const auto ms = [](std::int64_t ns) { return static_cast<double>(ns) * 1e-6; };
  std::printf("%zu messages, injected latency %.3f ms\n", found.size(), ms(latency_ns));
  std::printf("later than asked, ms: min %.4f, median %.4f, 90 %% %.4f, max %.4f\n",
              ms(found.front()), ms(found[found.size() / 2]), ms(found[found.size() * 9 / 10]),
              ms(found.back()));
  std::printf("never less than asked: %s; median at most 0.2 ms more: %s\n",
              found.front() >= 0 ? "yes" : "NO", found[found.size() / 2] <= 200'000 ? "yes" : "NO");
  return 0;
}

}  // namespace
}  // namespace pipewright

int main(int argc, char** argv) {
  using namespace pipewright;
  MpiSession mpi(&argc, &argv);
  const auto transport = mpi.transport();
  if (mpi.size() != 2) {
    if (mpi.rank() == 0) std::fprintf(stderr, "run it on two ranks: mpirun -n 2 %s\n", argv[0]);
    return 2;
  }
  if (mpi.rank() == 0) return coordinate(*transport);
  serve_rank(*transport, {1, MpiSession::host(), getpid()}, stop);
  return 0;
}
