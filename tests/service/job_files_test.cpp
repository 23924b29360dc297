// The files of jobs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "daemon/store/job_files.hpp"
#include "tests/service/support.hpp"

namespace pipewright::test {
namespace {

using testing::IsEmpty;

TEST(JobFiles, AFileIsThereWhenItsLastPartHasCome) {
  TemporaryFolder folder;
  JobFiles files(folder.path() / "jobs");
  files.put({{7, 0, 1}, "weights.npy", 0, "abc", false});
  EXPECT_THAT(files.list({7, 0}).files, IsEmpty());
  files.put({{7, 0, 1}, "weights.npy", 3, "def", true});
  ASSERT_EQ(files.list({7, 0}).files.size(), 1u);
  EXPECT_EQ(files.list({7, 0}).files[0].bytes, 6u);
  EXPECT_EQ(read_file(*files.find({7, 0}, "weights.npy")), "abcdef");
  EXPECT_FALSE(files.find({8, 0}, "weights.npy"));
  const std::vector<RunKey> runs{{7, 0}, {8, 0}};
  EXPECT_THAT(files.sync(runs), IsEmpty());
  EXPECT_EQ(read_file(*files.find({7, 0}, "weights.npy")), "abcdef");
}

TEST(JobFiles, ManyFilesOfOneRunKeepFewDescriptorsOpen) {
  const auto descriptors = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  TemporaryFolder folder;
  JobFiles files(folder.path() / "jobs");
  const auto before = descriptors();
  for (int i = 0; i < 200; ++i) files.put({{7, 0, 1}, "f" + std::to_string(i), 0, "x", true});
  EXPECT_LT(descriptors() - before, 70);
  const RunKey run{7, 0};
  EXPECT_THAT(files.sync({&run, 1}), IsEmpty());
  EXPECT_EQ(descriptors(), before + 1) << "the folder of all jobs stays open";
  EXPECT_EQ(files.list({7, 0}).files.size(), 200u);
}

TEST(JobFiles, ManyRunsAreSyncedTogetherAndKeepFewDescriptorsOpen) {
  const auto descriptors = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  TemporaryFolder folder;
  JobFiles files(folder.path() / "jobs");
  std::vector<RunKey> runs;
  for (std::uint32_t run = 0; run < 100; ++run) {
    runs.emplace_back(7, run);
    files.put({{7, run, 1}, "a.csv", 0, "x", true});
  }
  files.put({{7, 100, 1}, "a.csv", 0, "part", false});
  EXPECT_LT(descriptors(), 100);
  EXPECT_THAT(files.sync(runs), IsEmpty());
  files.put({{7, 100, 1}, "a.csv", 4, "s", true});
  EXPECT_EQ(read_file(*files.find({7, 100}, "a.csv")), "parts");
  EXPECT_EQ(read_file(*files.find({7, 99}, "a.csv")), "x");
}

TEST(JobFiles, TheFilesOfANewAttemptOverwrite) {
  TemporaryFolder folder;
  JobFiles files(folder.path() / "jobs");
  files.put({{7, 0, 1}, "a.csv", 0, "old", true});
  files.put({{7, 0, 1}, "b.csv", 0, "half of it", false});
  files.abandon({7, 0});
  files.put({{7, 0, 2}, "a.csv", 0, "new", true});
  EXPECT_EQ(read_file(*files.find({7, 0}, "a.csv")), "new");
  EXPECT_EQ(files.list({7, 0}).files.size(), 1u);
}

TEST(JobFiles, BadNamesAndOffsetsAreRefused) {
  TemporaryFolder folder;
  JobFiles files(folder.path() / "jobs");
  for (const char* name : {"", ".", "..", "../x", "a/b", "/etc/passwd", ".hidden", "a b"}) {
    EXPECT_THROW(files.put({{1, 0, 1}, name, 0, "x", true}), ProtocolError) << name;
    EXPECT_FALSE(files.find({1, 0}, name)) << name;
  }
  files.put({{1, 0, 1}, "a", 0, "xy", false});
  EXPECT_THROW(files.put({{1, 0, 1}, "a", 5, "z", false}), ProtocolError);
  EXPECT_THROW(files.put({{1, 0, 1}, "b", 5, "z", false}), ProtocolError);
  EXPECT_THROW(files.put({{1, 0, 1}, "c", 0, std::string(file_chunk_bytes_max + 1, 'x'), true}),
               ProtocolError);
}

TEST(JobFiles, ADiskThatRefusesIsAStoreError) {
  TemporaryFolder folder;
  std::ofstream(folder.path() / "jobs") << "a file where a folder should be";
  JobFiles files(folder.path() / "jobs");
  EXPECT_THROW(files.put({{1, 0, 1}, "a", 0, "x", true}), StoreError);
}

TEST(JobFiles, BytesOfFilesAreCountedOnTheWay) {
  TemporaryFolder folder;
  JobFiles files(folder.path() / "jobs");
  EXPECT_EQ(files.bytes_used(), 0);
  files.put({{1, 0, 1}, "a", 0, std::string(100, 'x'), true});
  files.put({{1, 3, 1}, "b", 0, std::string(20, 'x'), false});
  files.put({{2, 0, 1}, "a", 0, std::string(3, 'x'), true});
  files.put({{1, 0, 2}, "a", 0, std::string(50, 'x'), true});
  EXPECT_EQ(files.bytes_used(), 53) << "a file that came again, and none that is not whole";
  EXPECT_EQ(JobFiles(folder.path() / "jobs").bytes_used(), 53);
  std::filesystem::create_directories(folder.path() / "jobs/1/0/checkpoint");
  std::ofstream(folder.path() / "jobs/1/0/checkpoint/row-0") << "of a run that goes on";
  files.remove(1);
  EXPECT_EQ(files.bytes_used(), 3) << "checkpoints were never counted";
}

}  // namespace
}  // namespace pipewright::test
