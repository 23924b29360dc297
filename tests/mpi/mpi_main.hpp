// main() of tests that run under mpirun: every rank runs the same tests; only rank 0 prints, and
// the exit status of a rank with a failure makes the whole fail.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>

#include "worker/mpi/mpi_transport.hpp"

namespace pipewright {

inline Transport*& world() {
  static Transport* transport = nullptr;
  return transport;
}

/// Prints failures of ranks other than 0 with their rank; their successes are silent.
class QuietRank : public testing::EmptyTestEventListener {
 public:
  explicit QuietRank(int rank) : rank_(rank) {}
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d: %s:%d: %s\n", rank_, result.file_name(), result.line_number(),
                 result.message());
  }

 private:
  int rank_;
};

inline int mpi_test_main(int argc, char** argv) {
  MpiSession mpi(&argc, &argv);
  testing::InitGoogleTest(&argc, argv);
  if (mpi.rank() != 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new QuietRank(mpi.rank()));
  }
  const auto transport = mpi.transport();
  world() = transport.get();
  return RUN_ALL_TESTS();
}

}  // namespace pipewright
