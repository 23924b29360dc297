#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>

#include "core/base/error.hpp"
#include "core/data/file_source.hpp"
#include "core/data/labels.hpp"
#include "core/data/libsvm.hpp"

namespace pipewright {
namespace {

using testing::ElementsAre;

LibsvmData read(const std::string& text, const LibsvmOptions& options = {}) {
  std::istringstream stream(text);
  return read_libsvm(stream, "f.libsvm", options);
}

std::string error_of(const std::string& text, const LibsvmOptions& options = {}) {
  try {
    read(text, options);
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Libsvm, ReadsRowsLabelsAndLines) {
  const LibsvmData data = read("1 1:0.5 3:-2e3\n-1 2:1\n");
  EXPECT_THAT(data.labels, ElementsAre(1, -1));
  EXPECT_THAT(data.lines, ElementsAre(1, 2));
  EXPECT_THAT(data.rows.row_starts, ElementsAre(0, 2, 3));
  EXPECT_THAT(data.rows.columns, ElementsAre(0, 2, 1));
  EXPECT_THAT(data.rows.values, ElementsAre(0.5, -2000, 1));
  EXPECT_EQ(data.rows.column_count, 3);
  EXPECT_EQ(data.rows.row_count(), 2);
}

TEST(Libsvm, AcceptsCommentsBlankLinesCarriageReturnsAndBlanks) {
  const LibsvmData data = read(
      "# heading\r\n\r\n  +1 \t 1:+1  2:3 \r\n   \n0 # a row without entries\n-1 5:7 # 6:1\n\n0");
  EXPECT_THAT(data.labels, ElementsAre(1, 0, -1, 0));
  EXPECT_THAT(data.lines, ElementsAre(3, 5, 6, 8));
  EXPECT_THAT(data.rows.row_starts, ElementsAre(0, 2, 2, 3, 3));
  EXPECT_THAT(data.rows.columns, ElementsAre(0, 1, 4));
  EXPECT_EQ(data.rows.column_count, 5);
}

TEST(Libsvm, TakesTheNumberOfFeaturesThatIsGiven) {
  EXPECT_EQ(read("1 2:1\n", {.features = 123}).rows.column_count, 123);
  EXPECT_EQ(error_of("1 2:1\n0 3:1\n", {.features = 2}),
            "f.libsvm:2: index 3 is above the number of features, 2");
}

TEST(Libsvm, RefusesMalformedLinesWithTheirNumber) {
  EXPECT_EQ(error_of("1 1:1\n1 0:1\n"), "f.libsvm:2: index 0: indices count from 1");
  EXPECT_EQ(error_of("1 -3:1\n"), "f.libsvm:1: index -3: indices count from 1");
  EXPECT_EQ(error_of("1 3:1 -2:1\n"), "f.libsvm:1: index -2: indices count from 1");
  EXPECT_EQ(error_of("\n1 3:1 2:1\n"),
            "f.libsvm:2: index 2 comes after 3: indices of a line must ascend");
  EXPECT_EQ(error_of("1 3:1 3:1"),
            "f.libsvm:1: index 3 comes after 3: indices of a line must ascend");
  EXPECT_EQ(error_of("1 3:nan\n"), "f.libsvm:1: the value 'nan' is not a finite number");
  EXPECT_EQ(error_of("1 3:-inf\n"), "f.libsvm:1: the value '-inf' is not a finite number");
  EXPECT_EQ(error_of("nan 3:1\n"), "f.libsvm:1: the label 'nan' is not a finite number");
  EXPECT_EQ(error_of("1 3:1e999\n"),
            "f.libsvm:1: the value '1e999' is out of the range of float64");
  EXPECT_EQ(error_of("1 3:x\n"), "f.libsvm:1: the value 'x' is not a number");
  EXPECT_EQ(error_of("1 3:+-1\n"), "f.libsvm:1: the value '+-1' is not a number");
  EXPECT_EQ(error_of("1 3:1.5.2\n"), "f.libsvm:1: the value '1.5.2' is not a number");
  EXPECT_EQ(error_of("1 3:\n"), "f.libsvm:1: the value '' is not a number");
  EXPECT_EQ(error_of("1 :3\n"), "f.libsvm:1: the index of ':3' is not a whole number");
  EXPECT_EQ(error_of("1 2.5:3\n"), "f.libsvm:1: the index of '2.5:3' is not a whole number");
  EXPECT_EQ(error_of("1 qid:3\n"), "f.libsvm:1: the index of 'qid:3' is not a whole number");
  EXPECT_EQ(error_of("1 7\n"), "f.libsvm:1: expected INDEX:VALUE, found '7'");
  EXPECT_EQ(error_of("cat 1:1\n"), "f.libsvm:1: the label 'cat' is not a number");
  EXPECT_EQ(error_of("1:1 2:1\n"), "f.libsvm:1: the label '1:1' is not a number");
  EXPECT_EQ(error_of("1 2147483648:1\n"),
            "f.libsvm:1: index 2147483648 is above the largest supported, 2147483647");
  EXPECT_EQ(error_of("1 99999999999999999999:1\n"),
            "f.libsvm:1: index of '99999999999999999999:1' is too large");
  EXPECT_EQ(error_of(std::string("1 \0\1:1\n", 7)),
            "f.libsvm:1: the index of '??:1' is not a whole number");
}

TEST(Libsvm, RefusesAFileWithoutExamples) {
  EXPECT_EQ(error_of(""),
            "f.libsvm: holds no examples (0 lines); expected lines such as \"1 3:0.5 7:1\"");
  EXPECT_THAT(error_of("# only\n\n"), testing::HasSubstr("holds no examples (2 lines)"));
}

TEST(Libsvm, RefusesLinesAboveTheLimitWhereverTheyLie) {
  const std::string longer = "1 1:" + std::string(100, '0') + "\n";
  EXPECT_EQ(error_of("1\n" + longer, {.line_bytes_max = 50}),
            "f.libsvm:2: the line is longer than 50 bytes");
  const std::string endless(std::size_t{1} << 20, ' ');
  EXPECT_EQ(error_of(endless, {.line_bytes_max = 1000}),
            "f.libsvm:1: the line is longer than 1000 bytes");
}

TEST(Libsvm, ReadsLinesThatCrossThePiecesInWhichTheFileIsRead) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += std::to_string(i) + " 1:" + std::to_string(2 * i) + "\n";
  const LibsvmData data = read(text);
  ASSERT_EQ(data.rows.row_count(), 50'000);
  for (std::size_t i = 0; i < 50'000; ++i) {
    ASSERT_EQ(data.labels[i], static_cast<double>(i));
    ASSERT_EQ(data.rows.values[i], static_cast<double>(2 * i));
  }
}

TEST(Libsvm, ReadsA9a) {
  const std::string path = PIPEWRIGHT_SOURCE_DIR "/../shared/data/a9a.libsvm";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
  DiskFiles files;
  LibsvmData data = read_libsvm(*files.open(path), path);
  EXPECT_EQ(data.rows.row_count(), 32561);
  EXPECT_EQ(data.rows.column_count, 123);
  EXPECT_EQ(data.rows.values.size(), 451592u);
  map_to_two_classes(data.labels, [](std::size_t) { return "a9a"; });
  double positive = 0;
  for (const double label : data.labels) positive += label;
  EXPECT_EQ(positive, 7841);
}

std::string label_error_of(std::vector<double> labels) {
  try {
    map_to_two_classes(labels, [](std::size_t i) { return "f:" + std::to_string(i + 1); });
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Labels, OfTwoClassesBecomeZeroAndOne) {
  for (const auto& [low, high] : {std::pair{0.0, 1.0}, {-1.0, 1.0}, {1.0, 2.0}}) {
    std::vector<double> labels{high, low, low, high};
    map_to_two_classes(labels, [](std::size_t) { return "f"; });
    EXPECT_THAT(labels, ElementsAre(1, 0, 0, 1));
  }
}

TEST(Labels, OfOtherNumbersOfClassesAreNamed) {
  const std::string right = "; a two-class problem has labels 0 and 1, -1 and +1, or 1 and 2";
  EXPECT_EQ(label_error_of({1, -1, 3, 1}), "f:3: label 3 is a third one after -1 and 1" + right);
  EXPECT_EQ(label_error_of({2, 2, 0}), "f:3: the labels found are 0 and 2" + right);
  EXPECT_EQ(label_error_of({0.5, 1}), "f:2: the labels found are 0.5 and 1" + right);
  EXPECT_EQ(label_error_of({1, 1}), "f:1: every label from here on is 1 (2 examples)" + right);
}

}  // namespace
}  // namespace pipewright
