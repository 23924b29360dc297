// Points that wait for the daemon: in memory, then in a file; sent again from what is not stored.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "worker/runtime/point_backlog.hpp"

namespace pipewright {
namespace {

namespace fs = std::filesystem;

struct Backlog : testing::Test {
  fs::path folder = fs::temp_directory_path() / ("pipewright-backlog-" + std::to_string(getpid()));
  std::string file = folder / "points";
  ~Backlog() override { fs::remove_all(folder); }

  static std::string frame(int i) { return "frame " + std::to_string(i) + std::string(40, '.'); }
  static void fill(PointBacklog& backlog, int from, int to) {
    for (int i = from; i < to; ++i) {
      backlog.add(static_cast<std::uint64_t>(10 * (i + 1)), frame(i));
    }
  }
  static void expect(PointBacklog& backlog, int from, int to) {
    for (int i = from; i < to; ++i) ASSERT_EQ(backlog.next(), frame(i));
    EXPECT_EQ(backlog.next(), std::nullopt);
  }
};

TEST_F(Backlog, GivesEverythingOnceAndAgainFromWhatIsNotStored) {
  BacklogUse use{.memory_bytes_max = 1'000'000};
  PointBacklog backlog(file, use);
  fill(backlog, 0, 5);
  expect(backlog, 0, 5);
  backlog.acknowledge(29);  // of the third frame one point is missing
  fill(backlog, 5, 7);
  expect(backlog, 5, 7);
  backlog.rewind();
  expect(backlog, 2, 7);
  backlog.acknowledge(70);
  backlog.rewind();
  expect(backlog, 0, 0);
  EXPECT_EQ(use.bytes, 0u);
  EXPECT_FALSE(fs::exists(folder));
}

TEST_F(Backlog, BeyondItsBoundIsOnDiskAndGoneWhenItIsStored) {
  BacklogUse use{.memory_bytes_max = 100};
  {
    PointBacklog backlog(file, use);
    fill(backlog, 0, 50);
    EXPECT_TRUE(fs::exists(file));
    EXPECT_LE(use.memory_bytes, 100u);
    expect(backlog, 0, 50);
    backlog.acknowledge(200);
    fill(backlog, 50, 60);  // some in memory again, in the midst of those on disk
    backlog.rewind();
    expect(backlog, 20, 60);
    backlog.acknowledge(600);
    EXPECT_FALSE(fs::exists(file));
    fill(backlog, 60, 70);
    expect(backlog, 60, 70);
    EXPECT_TRUE(fs::exists(file));
    EXPECT_GT(use.bytes, use.memory_bytes);
  }
  EXPECT_FALSE(fs::exists(file));
  EXPECT_EQ(use.bytes, 0u);
}

TEST_F(Backlog, WhatTheDiskDoesNotTakeStaysInMemoryBeyondTheBound) {
  BacklogUse use{.memory_bytes_max = 100};
  PointBacklog backlog("/dev/null/points", use);
  fill(backlog, 0, 5);
  EXPECT_GT(use.memory_bytes, use.memory_bytes_max) << "from which is seen that it is full";
  expect(backlog, 0, 5);
  backlog.acknowledge(50);
  EXPECT_EQ(use.memory_bytes, 0u);
}

}  // namespace
}  // namespace pipewright
