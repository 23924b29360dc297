#include <gtest/gtest.h>

#include "core/data/partition.hpp"

namespace pipewright {
namespace {

TEST(Partition, GivesTheFirstBlocksOneMore) {
  EXPECT_EQ(block_range(10, 4, Stage(0)).size, 3);
  EXPECT_EQ(block_range(10, 4, Stage(1)).size, 3);
  EXPECT_EQ(block_range(10, 4, Stage(2)).size, 2);
  EXPECT_EQ(block_range(10, 4, Stage(3)).first, 8);
}

TEST(Partition, CoversEveryParameterOnceInOrder) {
  for (std::int64_t parameters = 0; parameters <= 40; ++parameters) {
    for (int stages = 1; stages <= 12; ++stages) {
      std::int64_t next = 0;
      std::int64_t largest = block_range(parameters, stages, Stage(0)).size;
      for (int s = 0; s < stages; ++s) {
        const BlockRange range = block_range(parameters, stages, Stage(s));
        ASSERT_EQ(range.first, next);
        ASSERT_LE(range.size, largest);
        ASSERT_GE(range.size, parameters / stages);
        largest = range.size;
        next += range.size;
      }
      ASSERT_EQ(next, parameters);
    }
  }
}

}  // namespace
}  // namespace pipewright
