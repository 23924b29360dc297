// How the daemon serves its web page; what the page does is tested in a browser (tests/web).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/service/support.hpp"

namespace pipewright::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct PageTest : testing::Test {
  PageTest() {
    fs::create_directories(page / "assets");
    std::ofstream(page / "index.html") << "<!doctype html>";
    std::ofstream(page / "assets/index-1a2b.js") << "export {};";
    std::ofstream(page / "assets/index-1a2b.css") << "body {}";
    std::ofstream(folder.path() / "secret.js") << "secret";
  }
  Reply get(const RunningDaemon& daemon, const std::string& target) const {
    return daemon.client().send("GET", target, "", {{"Authorization", ""}});
  }

  TemporaryFolder folder;
  fs::path page = folder.path() / "page";
};

TEST_F(PageTest, NeedsNoTokenAndLetsABrowserLoadNothingFromElsewhere) {
  RunningDaemon daemon({.data_dir = folder.path() / "data", .page_dir = page});
  const Reply reply = get(daemon, "/");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "<!doctype html>");
  EXPECT_EQ(reply.headers.at("content-type"), "text/html; charset=utf-8");
  EXPECT_EQ(reply.headers.at("cache-control"), "no-cache");
  EXPECT_EQ(reply.headers.at("x-content-type-options"), "nosniff");
  EXPECT_EQ(reply.headers.at("referrer-policy"), "no-referrer");
  const std::string policy = reply.headers.at("content-security-policy");
  EXPECT_THAT(policy, HasSubstr("default-src 'none'; script-src 'self';"));
  EXPECT_THAT(policy, HasSubstr("frame-ancestors 'none'"));
  EXPECT_THAT(policy, testing::Not(HasSubstr("unsafe")));
}

TEST_F(PageTest, AssetsAreKeptByBrowsersForTheirNamesChangeWithTheirContent) {
  RunningDaemon daemon({.data_dir = folder.path() / "data", .page_dir = page});
  const Reply script = get(daemon, "/assets/index-1a2b.js");
  EXPECT_EQ(script.status, 200);
  EXPECT_EQ(script.body, "export {};");
  EXPECT_EQ(script.headers.at("content-type"), "text/javascript; charset=utf-8");
  EXPECT_EQ(script.headers.at("cache-control"), "public, max-age=31536000, immutable");
  EXPECT_EQ(get(daemon, "/assets/index-1a2b.css").headers.at("content-type"),
            "text/css; charset=utf-8");
}

TEST_F(PageTest, OnlyItsOwnFilesAreServed) {
  RunningDaemon daemon({.data_dir = folder.path() / "data", .page_dir = page});
  for (const std::string target :
       {"/assets/", "/assets/none.js", "/assets/..%2f..%2fsecret.js", "/assets/%2e%2e%2findex.html",
        "/assets/..", "/assets/index-1a2b.js%00"}) {
    EXPECT_EQ(get(daemon, target).status, 404) << target;
  }
  // These are not the pattern of any open route, so they are not even told that nothing is there.
  for (const std::string target : {"/assets/../../secret.js", "/index.html", "/secret.js", "//"}) {
    EXPECT_EQ(get(daemon, target).status, 401) << target;
  }
  EXPECT_EQ(daemon.client().send("POST", "/", "x").status, 405);
}

TEST_F(PageTest, WithoutOneTheDaemonSaysWhy) {
  RunningDaemon daemon({.data_dir = folder.path() / "data", .page_dir = folder.path() / "none"});
  const Reply reply = get(daemon, "/");
  EXPECT_EQ(reply.status, 404);
  EXPECT_THAT(reply.body, HasSubstr("without its web page"));
}

}  // namespace
}  // namespace pipewright::test
