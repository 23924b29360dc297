// DESIGN.md section 2, checked on the sources as they are; and that the check finds what it is for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/layout/rules.hpp"

namespace pipewright::layout {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string read(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  EXPECT_TRUE(in.good()) << path;
  return text.str();
}

/// Every source file of these folders, from the project's root.
std::vector<std::string> sources(std::initializer_list<const char*> folders) {
  const fs::path root = PIPEWRIGHT_SOURCE_DIR;
  std::vector<std::string> found;
  for (const char* folder : folders) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const fs::path extension = entry.path().extension();
      if (extension == ".cpp" || extension == ".hpp" || extension == ".h") {
        found.push_back(fs::relative(entry.path(), root).generic_string());
      }
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

TEST(Layout, SourcesKnowOnlyWhomTheyMay) {
  const auto files = sources({"core", "proto", "worker", "daemon", "client", "tests", "bench"});
  ASSERT_GT(files.size(), 100u) << "the sources were not found";
  for (const std::string& file : files) {
    EXPECT_THAT(faults_of_source(file, read(fs::path(PIPEWRIGHT_SOURCE_DIR) / file)), IsEmpty());
  }
}

TEST(Layout, SourcesAreListedByHandButForPlugins) {
  const fs::path root = PIPEWRIGHT_SOURCE_DIR;
  for (const std::string& file : sources({"core", "proto", "worker", "daemon", "client"})) {
    fs::path folder = fs::path(file).parent_path();
    while (!fs::exists(root / folder / "CMakeLists.txt")) folder = folder.parent_path();
    ASSERT_FALSE(folder.empty()) << file << " has no CMakeLists.txt above it";
    EXPECT_THAT(
        faults_of_listing(file, folder.generic_string(), read(root / folder / "CMakeLists.txt")),
        IsEmpty());
  }
}

struct Case {
  const char* path;
  const char* line;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.path << ": " << c.line;
}

class LayoutForbids : public ::testing::TestWithParam<Case> {};

TEST_P(LayoutForbids, ThisLine) {
  const std::string text = std::string("// why\n") + GetParam().line + "\n";
  const auto faults = faults_of_source(GetParam().path, text);
  ASSERT_THAT(faults, SizeIs(1)) << GetParam().path << ": " << GetParam().line;
  EXPECT_THAT(faults[0], HasSubstr(std::string(GetParam().path) + ":2: "));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, LayoutForbids,
    ::testing::Values(Case{"core/train/run.cpp", "#include \"proto/codec/wire.hpp\""},
                      Case{"core/train/run.cpp", "#include \"worker/transport/transport.hpp\""},
                      Case{"core/train/run.cpp", "#include \"daemon/jobs/queue.hpp\""},
                      Case{"core/train/run.cpp", "  #  include <mpi.h>"},
                      Case{"core/sim/link.hpp", "#include <boost/asio/io_context.hpp>"},
                      Case{"core/sim/link.hpp", "#include <boost/math/distributions/normal.hpp>"},
                      Case{"core/sim/link.hpp", "#include <thread>"},
                      Case{"core/sim/link.hpp", "#include <mutex>"},
                      Case{"core/sim/link.hpp", "#include <sys/socket.h>"},
                      Case{"core/sim/link.hpp", "#include <google/protobuf/message.h>"},
                      Case{"core/sim/link.hpp", "auto t = std::chrono::steady_clock::now();"},
                      Case{"proto/codec/wire.hpp", "#include \"client/cli/command.hpp\""},
                      Case{"worker/runtime/pool.cpp", "#include \"pipewright/v1/job.pb.h\""},
                      Case{"worker/runtime/pool.cpp", "#include <pipewright/v1/job.pb.h>"},
                      Case{"worker/runtime/pool.cpp", "#include \"worker/mpi/mpi_transport.hpp\""},
                      Case{"worker/runtime/pool.cpp", "#include <mpi.h>"},
                      Case{"worker/main.cpp", "#include \"daemon/net/limits.hpp\""},
                      Case{"daemon/net/server.cpp", "#include \"worker/runtime/pool.hpp\""},
                      Case{"daemon/net/server.cpp", "#include \"client/cli/command.hpp\""},
                      Case{"daemon/net/server.cpp", "#include <google/protobuf/message.h>"},
                      Case{"daemon/service.cpp", "#include <sqlite3.h>"},
                      Case{"daemon/jobs/queue.cpp", "#include \"daemon/store/store.hpp\""},
                      Case{"daemon/jobs/queue.cpp", "#include <boost/asio/post.hpp>"},
                      Case{"daemon/jobs/queue.cpp", "#include <fstream>"},
                      Case{"daemon/jobs/queue.cpp", "#include <sqlite3.h>"},
                      Case{"daemon/jobs/queue.cpp", "#include <netinet/in.h>"},
                      Case{"client/cli/submit.cpp", "#include \"daemon/data_dir.hpp\""},
                      Case{"client/cli/submit.cpp", "#include <boost/asio/post.hpp>"},
                      Case{"client/cli/submit.cpp", "#include \"command.hpp\""},
                      Case{"client/cli/net/api.cpp", "#include \"../command.hpp\""},
                      Case{"worker/main.cpp",
                           "// TO"
                           "DO later"},
                      Case{"tests/unit/base_test.cpp",
                           "// FIX"
                           "ME later"}));

class LayoutAllows : public ::testing::TestWithParam<Case> {};

TEST_P(LayoutAllows, ThisLine) {
  EXPECT_THAT(faults_of_source(GetParam().path, std::string(GetParam().line) + "\n"), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Cases, LayoutAllows,
    ::testing::Values(Case{"core/base/random.cpp", "#include <Random123/philox.h>"},
                      Case{"core/data/generate.cpp", "#include <Eigen/QR>"},
                      Case{"core/data/file_source.cpp", "#include <fstream>"},
                      Case{"proto/codec/wire.cpp", "#include \"pipewright/v1/job.pb.h\""},
                      Case{"proto/codec/wire.cpp", "#include <google/protobuf/message.h>"},
                      Case{"worker/mpi/mpi_transport.cpp", "#include <mpi.h>"},
                      Case{"worker/main.cpp", "#include \"worker/mpi/mpi_transport.hpp\""},
                      Case{"daemon/store/sqlite.cpp", "#include <sqlite3.h>"},
                      Case{"daemon/net/asio.hpp", "#include <boost/asio/post.hpp>"},
                      Case{"client/cli/submit.cpp", "#include \"proto/codec/job_file.hpp\""},
                      Case{"tests/unit/base_test.cpp", "#include \"daemon/jobs/queue.hpp\""}));

TEST(Layout, LongFilesAreFound) {
  std::string text;
  for (int i = 0; i < 501; ++i) text += "int x;\n";
  EXPECT_THAT(faults_of_source("core/base/ids.hpp", text),
              ElementsAre(HasSubstr("more than 500 lines")));
}

TEST(Layout, SourcesThatNothingBuildsAreFound) {
  EXPECT_THAT(faults_of_listing("core/base/text.cpp", "core", "SOURCES base/text.cpp LINK"),
              IsEmpty());
  EXPECT_THAT(faults_of_listing("core/base/text.cpp", "core", "SOURCES my_base/text.cpp LINK"),
              ElementsAre(HasSubstr("core/base/text.cpp: not listed")));
  EXPECT_THAT(faults_of_listing("core/schedules/new.cpp", "core", "SOURCES base/text.cpp LINK"),
              IsEmpty());
  EXPECT_THAT(faults_of_listing("core/schedules/new.cpp", "core", "SOURCES schedules/new.cpp"),
              ElementsAre(HasSubstr("plug-in that is listed")));
  EXPECT_THAT(faults_of_listing("worker/main.cpp", "worker", "file(GLOB x *.cpp)\nmain.cpp"),
              ElementsAre(HasSubstr("GLOB")));
}

}  // namespace
}  // namespace pipewright::layout
