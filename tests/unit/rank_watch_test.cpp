// Which ranks of a pool are taken for dead, with time as an argument.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/error.hpp"
#include "worker/runtime/rank_watch.hpp"

namespace pipewright {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const RankWatch::Time start = RankWatch::Time() + std::chrono::hours(1);

RankInfo me() {
  return {0, "here", getpid()};
}

TEST(RankWatch, ASilentRankIsMissingAfterItsTimeAndStaysSo) {
  RankWatch watch({me(), {1, "there", 1}, {2, "there", 2}}, milliseconds(1000), start);
  for (int ms = 100; ms <= 1000; ms += 100) {
    watch.heard(1, start + milliseconds(ms));
    watch.look({}, start + milliseconds(ms));
    EXPECT_THAT(watch.missing(), IsEmpty()) << ms;
  }
  watch.heard(1, start + milliseconds(1100));
  watch.look({}, start + milliseconds(1100));
  EXPECT_THAT(watch.missing(), ElementsAre(2u));
  EXPECT_EQ(watch.describe(2, start + milliseconds(1100)),
            "rank 2 (host there, process 2) has said nothing for 1.1 s");
  watch.heard(2, start + milliseconds(1200));
  watch.look({}, start + milliseconds(1200));
  EXPECT_THAT(watch.missing(), ElementsAre(2u));
}

TEST(RankWatch, ARankThatPreparesARunMayBeSilentForTenTimesAsLong) {
  RankWatch watch({me(), {1, "there", 1}}, milliseconds(1000), start);
  for (int ms = 100; ms <= 10'000; ms += 100) watch.look({1}, start + milliseconds(ms));
  EXPECT_THAT(watch.missing(), IsEmpty());
  watch.look({1}, start + milliseconds(10'100));
  EXPECT_THAT(watch.missing(), ElementsAre(1u));
}

TEST(RankWatch, WhileRankZeroItselfComputesNobodyIsSilent) {
  RankWatch watch({me(), {1, "there", 1}}, milliseconds(1000), start);
  watch.look({}, start + milliseconds(100));
  watch.look({}, start + milliseconds(60'000));
  EXPECT_THAT(watch.missing(), IsEmpty());
  for (int ms = 60'100; ms <= 61'000; ms += 100) watch.look({}, start + milliseconds(ms));
  EXPECT_THAT(watch.missing(), ElementsAre(1u)) << "from then on its silence counts";
}

TEST(CoordinatorWatch, ItsSilenceForTenTimesAsLongIsTheEndOfARank) {
  CoordinatorWatch watch(milliseconds(1000), start);
  watch.heard(start + milliseconds(100));
  for (int ms = 200; ms <= 10'100; ms += 100) watch.look(start + milliseconds(ms));
  watch.heard(start + milliseconds(10'100));
  for (int ms = 10'200; ms <= 20'100; ms += 100) watch.look(start + milliseconds(ms));
  try {
    watch.look(start + milliseconds(20'200));
    FAIL() << "it goes on";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "rank 0 cannot be reached: it has said nothing for 10000 ms");
  }
}

TEST(CoordinatorWatch, OneThatNeverSpeaksIsNotWaitedFor) {
  CoordinatorWatch watch(milliseconds(1000), start);
  for (int ms = 100; ms <= 30'000; ms += 100) watch.look(start + milliseconds(ms));
}

TEST(CoordinatorWatch, WhileTheRankItselfComputesNobodyIsSilent) {
  CoordinatorWatch watch(milliseconds(1000), start);
  watch.heard(start);
  watch.look(start + milliseconds(100));
  watch.look(start + milliseconds(60'000));
  for (int ms = 60'100; ms <= 69'800; ms += 100) watch.look(start + milliseconds(ms));
  EXPECT_THROW(watch.look(start + milliseconds(70'200)), Error) << "from then on it counts";
}

TEST(RankWatch, TheEndOfAProcessOfThisMachineIsSeenAtOnce) {
  const pid_t child = ::fork();
  if (child == 0) {
    while (true) ::pause();
  }
  RankWatch watch({me(), {1, "here", child}}, milliseconds(1000), start);
  EXPECT_TRUE(watch.is_there(1));
  watch.look({}, start + milliseconds(100));
  EXPECT_THAT(watch.missing(), IsEmpty());
  ::kill(child, SIGSTOP);
  ::waitpid(child, nullptr, WUNTRACED);
  EXPECT_FALSE(watch.is_there(1)) << "a process that is stopped does nothing";
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(watch.is_there(1));
  watch.look({}, start + milliseconds(200));
  EXPECT_THAT(watch.missing(), ElementsAre(1u));
  EXPECT_THAT(watch.describe(1, start + milliseconds(200)), HasSubstr("has died"));
}

TEST(RankWatch, ANumberThatIsNoProcessLikeThisOneIsThatOfAnotherMachine) {
  // Process 1 is there, but no rank; the other has gone already.
  RankWatch watch({me(), {1, "here", 1}, {2, "here", 0x3fffffff}}, milliseconds(1000), start);
  EXPECT_FALSE(watch.is_there(1));
  watch.look({}, start + milliseconds(100));
  EXPECT_THAT(watch.missing(), IsEmpty());
}

}  // namespace
}  // namespace pipewright
