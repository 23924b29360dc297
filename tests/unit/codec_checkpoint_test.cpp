#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/base/error.hpp"
#include "proto/codec/checkpoint_folder.hpp"

namespace pipewright {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const CheckpointOrigin ours{"0.1.0 abc", "job", "data"};

class Checkpoints : public testing::Test {
 protected:
  Checkpoints()
      : path_(fs::temp_directory_path() / ("pipewright-folder-" + std::to_string(getpid()))),
        folder_(path_) {}
  ~Checkpoints() override { fs::remove_all(path_); }

  /// Two rows and the values, whole.
  void store(std::int64_t tick, StoredCheckpoints& checkpoints) {
    checkpoints.put_row(Tick(tick), Row(1), "one at " + std::to_string(tick));
    checkpoints.put_values(Tick(tick), "values to " + std::to_string(tick));
    checkpoints.put_row(Tick(tick), Row(0), "zero at " + std::to_string(tick));
    checkpoints.complete(Tick(tick));
  }
  std::optional<Tick> newest(const CheckpointOrigin& origin = ours) {
    refused_.clear();
    const auto found = folder_.newest(&origin, refused_);
    return found ? std::optional(found->tick) : std::nullopt;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(path_)) {
      all.push_back(entry.path().filename().string());
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  fs::path path_;
  CheckpointFolder folder_;
  std::vector<std::string> refused_;
};

TEST_F(Checkpoints, WhatWasPutComesBackInAnotherObject) {
  {
    StoredCheckpoints first(path_, ours, 2);
    EXPECT_THAT(first.find(), IsEmpty());
    EXPECT_FALSE(first.resume_from());
    store(10, first);
    store(20, first);
  }
  StoredCheckpoints second(path_, ours, 2);
  EXPECT_THAT(second.find(), IsEmpty());
  EXPECT_EQ(second.resume_from(), Tick(20));
  EXPECT_EQ(second.row(Row(0)), "zero at 20");
  EXPECT_EQ(second.row(Row(1)), "one at 20");
  EXPECT_EQ(second.next_values(), "values to 10");
  EXPECT_EQ(second.next_values(), "values to 20");
  EXPECT_EQ(second.next_values(), std::nullopt);
  store(30, second);
  EXPECT_THAT(names(), ElementsAre("row-0-20", "row-0-30", "row-1-20", "row-1-30", "values-10",
                                   "values-20", "values-30"));
  StoredCheckpoints third(path_, ours, 2);
  third.find();
  EXPECT_THAT(third.continued(), ElementsAre(Tick(20), Tick(30)));
  third.clear();
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(Checkpoints, WhatIsDamagedCutShortOrNotWholeIsRefusedAndTheOneBeforeIsTaken) {
  StoredCheckpoints checkpoints(path_, ours, 2);
  store(10, checkpoints);
  store(20, checkpoints);
  const std::string good = folder_.read("row-1-20");
  std::string bad = good;
  bad.back() ^= 1;
  folder_.write("row-1-20", bad);
  EXPECT_EQ(newest(), Tick(10));
  EXPECT_THAT(refused_, ElementsAre(HasSubstr("tick 20 is not used")));
  EXPECT_THAT(refused_[0], HasSubstr("checksum"));
  folder_.write("row-1-20", good.substr(0, good.size() - 3));
  EXPECT_EQ(newest(), Tick(10));
  folder_.write("row-1-20", folder_.read("row-1-10"));
  EXPECT_EQ(newest(), Tick(10));
  EXPECT_THAT(refused_[0], HasSubstr("it is row-1-10"));
  fs::remove(path_ / "row-1-20");
  EXPECT_EQ(newest(), Tick(10));
  folder_.write("row-1-20", good);
  EXPECT_EQ(newest(), Tick(20));
  // The values of all before are needed.
  fs::remove(path_ / "values-10");
  EXPECT_EQ(newest(), std::nullopt);
  EXPECT_EQ(refused_.size(), 2u);
}

TEST_F(Checkpoints, WhatIsOfAnotherJobProgramOrDataIsRefused) {
  StoredCheckpoints checkpoints(path_, ours, 2);
  store(10, checkpoints);
  for (const auto& [origin, what] :
       {std::pair{CheckpointOrigin{"0.1.0 abc", "other", "data"}, "another job"},
        std::pair{CheckpointOrigin{"0.1.0 def", "job", "data"}, "another version"},
        std::pair{CheckpointOrigin{"0.1.0 abc", "job", "other"}, "another set of data"}}) {
    EXPECT_EQ(newest(origin), std::nullopt);
    EXPECT_THAT(refused_, ElementsAre(HasSubstr(what)));
  }
  StoredCheckpoints other(path_, {"0.1.0 abc", "other", "data"}, 2);
  EXPECT_EQ(other.find().size(), 1u);
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(Checkpoints, OneKnowsWhoMadeWhatItStandsOn) {
  const Maker one{"0.1.0", "abc", "b1", "Intel"};
  const Maker two{"0.1.0", "abc", "b1", "AMD"};
  for (const Maker& maker : {one, two, one}) {
    StoredCheckpoints checkpoints(path_, ours, 2, maker);
    checkpoints.find();
    store(checkpoints.resume_from().value_or(Tick(0)).value + 10, checkpoints);
  }
  StoredCheckpoints last(path_, ours, 2, one);
  last.find();
  EXPECT_EQ(last.resume_from(), Tick(30));
  EXPECT_THAT(last.makers(), ElementsAre(one, two));
}

TEST_F(Checkpoints, TheNewestIsAsLargeAsTheFilesThatGoingOnFromItReads) {
  EXPECT_FALSE(folder_.newest_info());
  StoredCheckpoints checkpoints(path_, ours, 2);
  for (const std::int64_t tick : {10, 20, 30}) store(tick, checkpoints);
  checkpoints.put_row(Tick(40), Row(0), "of one that is not whole yet");
  checkpoints.put_values(Tick(40), "its values");
  std::uint64_t bytes = 0;
  for (const char* name : {"row-0-30", "row-1-30", "values-10", "values-20", "values-30"}) {
    bytes += fs::file_size(path_ / name);
  }
  const std::optional<CheckpointInfo> info = folder_.newest_info();
  ASSERT_TRUE(info);
  EXPECT_EQ(info->tick, 30);
  EXPECT_EQ(info->bytes, bytes);
  EXPECT_GT(info->stored_unix_ms, 1'500'000'000'000);
  checkpoints.put_row(Tick(40), Row(1), "now it is");
  EXPECT_EQ(folder_.newest_info()->tick, 40);
}

TEST_F(Checkpoints, AFileComesInPartsThatFollowEachOther) {
  folder_.append("row-0-10", 0, "abc", false);
  EXPECT_FALSE(fs::exists(path_ / "row-0-10"));
  EXPECT_THROW(folder_.append("row-0-10", 7, "def", false), DataError);
  folder_.append("row-0-10", 3, "def", true);
  EXPECT_EQ(folder_.read("row-0-10"), "abcdef");
  EXPECT_EQ(folder_.read_part("row-0-10", 2, 3), (std::pair{std::string("cde"), false}));
  EXPECT_EQ(folder_.read_part("row-0-10", 5, 3), (std::pair{std::string("f"), true}));
  EXPECT_EQ(folder_.read_part("row-0-11", 0, 3), (std::pair{std::string(), true}));
  for (const char* name : {"../row-0-1", "x", "row-1", "row-a-1", "values--1", "values-"}) {
    EXPECT_THROW(folder_.append(name, 0, "a", true), DataError) << name;
  }
}

TEST_F(Checkpoints, AnotherDistanceNameOrNumberOfRanksIsNoOtherJob) {
  Value job = Value::map();
  job.set("seed", 1);
  const CheckpointOrigin plain = CheckpointOrigin::of(job, {});
  job.set("ranks", 3);
  job.set("name", "x");
  job.set("checkpoint", Value(Value::Map{{"every", 5}}));
  EXPECT_EQ(CheckpointOrigin::of(job, {}), plain);
  job.set("seed", 2);
  EXPECT_NE(CheckpointOrigin::of(job, {}).job_sha256, plain.job_sha256);
  EXPECT_NE(CheckpointOrigin::of(job, {{"a", 1, "hash"}}).data_sha256, plain.data_sha256);
}

}  // namespace
}  // namespace pipewright
