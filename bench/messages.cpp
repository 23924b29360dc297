// A tensor message between two ranks, encoded as protobuf, against raw MPI of the same bytes:
// ping-pong.
//   mpirun -n 2 build/release/bench/bench_messages
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "proto/codec/tensor_wire.hpp"
#include "worker/mpi/mpi_transport.hpp"

namespace pipewright {
namespace {

constexpr int rounds = 7;

double seconds_of(int count, const std::function<void()>& one) {
  for (int i = 0; i < count / 10 + 1; ++i) one();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) one();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / count;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Message receive(RunTransport& run) {
  while (true) {
    if (auto message = run.poll()) return std::move(*message);
  }
}

/// One way, through the transport.
double tensors(RunTransport& run, std::int64_t bytes, int count) {
  Message message;
  message.tensor = Tensor::zeros(DType::float64, {bytes / 8});
  const bool first = run.rank() == 0;
  return seconds_of(count,
                    [&] {
                      if (first) {
                        run.send(1, std::move(message));
                        message = receive(run);
                      } else {
                        message = receive(run);
                        run.send(0, std::move(message));
                      }
                    }) /
         2;
}

/// One way, MPI alone: the same number of bytes, and the receiver does not know it in advance
/// either.
double raw(std::int64_t bytes, int count) {
  std::vector<char> buffer(static_cast<std::size_t>(bytes) + tensor_header_bytes);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const auto send = [&] {
    MPI_Request request;
    MPI_Isend(buffer.data(), static_cast<int>(buffer.size()), MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD,
              &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  };
  const auto receive_raw = [&] {
    MPI_Message message;
    MPI_Status status;
    int found = 0;
    while (found == 0) MPI_Improbe(1 - rank, 0, MPI_COMM_WORLD, &found, &message, &status);
    int size = 0;
    MPI_Get_count(&status, MPI_BYTE, &size);
    MPI_Mrecv(buffer.data(), size, MPI_BYTE, &message, MPI_STATUS_IGNORE);
  };
  return seconds_of(count,
                    [&] {
                      if (rank == 0) {
                        send();
                        receive_raw();
                      } else {
                        receive_raw();
                        send();
                      }
                    }) /
         2;
}

void compare(RunTransport& run, std::int64_t bytes) {
  const int count =
      static_cast<int>(std::clamp<std::int64_t>(200'000'000 / (bytes + 2000), 200, 50'000));
  std::vector<double> with, without, ratios;
  for (int i = 0; i < rounds; ++i) {
    with.push_back(tensors(run, bytes, count));
    without.push_back(raw(bytes, count));
    ratios.push_back(with.back() / without.back());
  }
  if (run.rank() == 0) {
    std::printf("%8lld bytes: transport %8.2f us, raw MPI %8.2f us, ratio (median of %d) %.2f\n",
                static_cast<long long>(bytes), 1e6 * median(with), 1e6 * median(without), rounds,
                median(ratios));
  }
}

}  // namespace
}  // namespace pipewright

int main(int argc, char** argv) {
  pipewright::MpiSession mpi(&argc, &argv);
  if (mpi.size() != 2) {
    if (mpi.rank() == 0)
      std::fprintf(stderr, "bench_messages: run it on 2 ranks: mpirun -n 2 ...\n");
    return 2;
  }
  const auto transport = mpi.transport();
  const std::vector<int> both{0, 1};
  const auto run = transport->open_run(both, 1);
  for (const std::int64_t bytes : {256, 4096, 65536, 1048576}) pipewright::compare(*run, bytes);
  run->begin_close();
  while (!run->closed()) {
  }
  return 0;
}
